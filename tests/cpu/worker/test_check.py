"""`tcw check` of a project: accepted, changed, accepted again; causes, formats, exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tcw.workbench.check.budget_file import NAME
from tests.cpu.command_line import tcw, tcw_process
from tests.cpu.worker.test_diff import MODEL, git

CONFIG = """\
[targets.block]
file = "model.py"
engine = "tcw"
no-grad = true
fused = ["layer_norm + mul"]

[targets.net]
file = "net.py::Net(8)"
inputs = "f32[4,8]"
engine = "tcw"
tolerance = { memory-peak = "ignore" }
"""
NET = """\
import torch
from parts import activation


class Net(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a = torch.nn.Linear(n, n)

    def forward(self, x):
        return activation(self.a(x))
"""
PARTS = """\
import torch


def activation(x):
    return torch.relu(x)
"""


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Writes the project with its accepted budget, which was made once."""
    first = tmp_path_factory.mktemp("project")
    files = {"tcw.toml": CONFIG, "model.py": MODEL, "net.py": NET, "parts.py": PARTS}
    for name, text in files.items():
        (first / name).write_text(text)
    done = tcw(first, "check", "--quiet")
    assert done.code == 1
    assert "2 targets: nothing accepted yet" in done.out
    done = tcw(first, "check", "--accept", "--quiet")
    assert done.code == 0, done.err
    files[NAME] = (first / NAME).read_text()

    def write(folder: Path) -> None:
        for name, text in files.items():
            (folder / name).write_text(text)
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "one")

    return write


def test_as_accepted(accepted: Callable[[Path], None], tmp_path: Path) -> None:
    accepted(tmp_path)
    (tmp_path / "model.py").write_text("# moved\n" + MODEL)
    done = tcw(tmp_path, "check", COLUMNS="160")
    assert done.code == 0, done.out
    assert done.out.startswith("2 targets: as accepted\n")


def test_worse_names_the_line_and_an_accept_accepts(
    accepted: Callable[[Path], None], tmp_path: Path
) -> None:
    accepted(tmp_path)
    (tmp_path / "parts.py").write_text(PARTS.replace("    return", "    print(1)\n    return"))
    done = tcw(tmp_path, "check", "--changed-since", "HEAD", "--quiet", COLUMNS="160")
    assert done.code == 1
    assert "block" not in done.out, "no file that it imports has changed"
    lines = done.out.splitlines()
    assert lines[0] == "1 target: worse than accepted"
    assert lines[3] == "  parts.py:5  a new graph break: print(), 1 more graph"
    assert lines[4] == "  because  parts.py:5 is new: print(1)"

    formats = ("--format", "sarif=a.sarif", "--format", "markdown=a.md", "--format", "github")
    more = ("--format", "json=a.json", "--no-cause", "--quiet")
    done = tcw(tmp_path, "check", "net", *formats, *more)
    assert done.code == 1, done.err
    (target,) = json.loads((tmp_path / "a.json").read_text())["targets"]
    assert target["outcome"] == "worse"
    (broken,) = (one for one in target["changes"] if one["group"] == "break")
    assert (broken["line"], broken["standing"]) == (5, "worse")
    assert broken["file"] == str(tmp_path / "parts.py")
    assert done.out.startswith("::error file=parts.py,line=5,")
    assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "a.md").read_text().startswith("<!-- tcw check -->")

    done = tcw(tmp_path, "check", "net", "--accept", "--quiet")
    assert done.code == 0, done.err
    count = re.search(r"net: (\d+) facts accepted", done.out)
    assert count is not None
    done = tcw(tmp_path, "check", "net", "--quiet", COLUMNS="160")
    assert done.code == 0
    assert f"net  as accepted  {count[1]} facts" in done.out
    assert "[block]" in (tmp_path / NAME).read_text()

    (tmp_path / "parts.py").write_text(PARTS)
    done = tcw(tmp_path, "check", "net", "--quiet", COLUMNS="160")
    assert done.code == 0
    assert "better than accepted" in done.out
    assert "a graph break gone: GB0059" in done.out
    assert tcw(tmp_path, "check", "net", "--strict", "--quiet").code == 1


def test_a_target_that_cannot_be_recorded(accepted: Callable[[Path], None], tmp_path: Path) -> None:
    accepted(tmp_path)
    (tmp_path / "net.py").write_text(NET + "\nraise SystemError('gone')\n")
    done = tcw(tmp_path, "check", "net", "--quiet", COLUMNS="160")
    assert done.code == 1
    assert "a new failure: SystemError" in done.out
    before = (tmp_path / NAME).read_text()
    assert "SystemError" not in before
    for name in ("model.py", "net.py"):
        (tmp_path / name).write_text("raise SystemError('gone')\n")
    (tmp_path / NAME).unlink()
    done = tcw(tmp_path, "check", "net", "--quiet", COLUMNS="160")
    assert done.code == 1
    assert "could not be recorded" in done.out
    assert "SystemError: gone" in done.out


def test_targets_on_a_ray_cluster(tmp_path: Path, accepted: Callable[[Path], None]) -> None:
    """A cluster of one machine, started for the check; the cause is found there, too."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tcw[ray]'")
    accepted(tmp_path)
    done = tcw_process(tmp_path, "check", "--executor", "ray", "--quiet", "--format", "json")
    assert done.code == 0, done.out + done.err
    found = json.loads(done.out)
    assert [one["outcome"] for one in found["targets"]] == ["ok", "ok"]
    file = tmp_path / "parts.py"
    file.write_text(PARTS.replace("return torch.relu(x)", "print(1)\n    return torch.relu(x)"))
    done = tcw_process(tmp_path, "check", "net", "--executor", "ray", "--quiet", "--format", "json")
    assert done.code == 1, done.out + done.err
    (one,) = json.loads(done.out)["targets"]
    assert one["outcome"] == "worse"
    assert any("GB0059" in change["name"] for change in one["changes"])
    assert one["effects"][0]["cause"] == "parts.py:5 is new: print(1)"
