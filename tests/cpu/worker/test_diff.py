"""`tcw diff` of models that it records: revisions, options, and planted changes by their first
line."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import jsonschema
import pytest
import torch

from tcw.workbench.cli.in_turn import FEWEST
from tcw.workbench.worker.guardian import CACHES_PREFIX
from tests.cpu.command_line import tcw
from tests.no_torch import schemas

MODEL = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.library.custom_op("plantedlib::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.scale = 2

    def forward(self, x, mask=None):
        x = self.norm(x) * self.scale
        y = F.gelu(x) + x
        a = F.scaled_dot_product_attention(y, y, y)
        return torch.softmax(a + y, -1)


model = Block().eval()
example_inputs = [(torch.randn(2, 2, 16, 32),), (torch.randn(2, 2, 24, 32),)]
"""
OPTIONS = ("--no-grad", "--engine", "tcw", "--quiet")


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*command, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("line", "instead", "first", "cause"),
    [
        pytest.param(
            "        y = F.gelu(x) + x",
            "        print(x.shape)\n        y = F.gelu(x) + x",
            "model.py:25  a new graph break: print()",
            "model.py:25 is new: print(x.shape)",
            id="break",
        ),
        pytest.param(
            "        y = F.gelu(x) + x",
            "        y = F.gelu(x.double()).float() + x",
            "model.py:25  gelu computes in float64, was float32",
            "model.py:25 is edited: y = F.gelu(x.double()).float() + x",
            id="dtype",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "        a = F.scaled_dot_product_attention(y, y, y)",
            "        mask = torch.ones(y.shape[2], y.shape[2], dtype=torch.bool).tril()\n"
            "        a = F.scaled_dot_product_attention(y, y, y, attn_mask=mask)",
            "model.py:27  scaled_dot_product_attention also reads mask",
            "model.py:27 is edited: a = F.scaled_dot_product_attention(y, y, y, attn_mask=mask)",
            id="mask",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "        y = F.gelu(x) + x",
            "        y = twice(F.gelu(x)) + x",
            "model.py:25  plantedlib::twice is new",
            "model.py:25 is edited: y = twice(F.gelu(x)) + x",
            id="custom op",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "        self.scale = 2",
            "        self.scale = 2.0",
            "Nothing changed",
            "",
            id="nothing",
        ),
    ],
)
def test_a_planted_change_is_the_first_line(
    line: str, instead: str, first: str, cause: str, tmp_path: Path
) -> None:
    """At a revision, and as it is now: with a comment and an unused function above the model."""
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "model.py")
    git(tmp_path, "commit", "-qm", "one")
    assert MODEL.count(line) == 1
    file.write_text("# moved\n" + MODEL.replace(line, instead))
    done = tcw(tmp_path, "diff", "--base", "HEAD", "model.py", *OPTIONS, COLUMNS="160")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith(first), done.out
    if cause:
        assert lines[1].removeprefix("because").strip() == cause, done.out
    assert not list(tmp_path.glob(f"{CACHES_PREFIX}*"))


def test_one_more_layer_loses_no_fusion(tmp_path: Path) -> None:
    """Although torch numbers its nodes otherwise, and more pairs look alike."""
    model = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ModuleList(nn.Linear(16, 16) for _ in range(LAYERS))

    def forward(self, x):
        for up in self.up:
            x = x + F.relu(up(F.rms_norm(x, (16,))))
        return x


model = Net()
example_inputs = (torch.randn(4, 16, requires_grad=True),)
"""
    for name, layers in (("two", 2), ("three", 3)):
        (tmp_path / f"{name}.py").write_text(model.replace("LAYERS", str(layers)))
    options = ("--engine", "tcw", "--until", "codegen", "--quiet")
    done = tcw(tmp_path, "diff", "two.py", "three.py", *options, COLUMNS="160")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "three.py:13  up.2 is new: linear"
    assert lines[1].startswith("because  three.py:9 is edited: self.up = nn.ModuleList(")
    assert "fused" not in done.out


def test_options_of_one_side(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    done = tcw(tmp_path, "diff", "model.py", *OPTIONS, "--b", "--dynamic", COLUMNS="160")
    assert done.code == 0, done.err
    assert "because  dynamic default → on" in done.out
    assert "model.py → model.py --dynamic" in done.out


@pytest.mark.long
def test_a_side_of_another_interpreter(tmp_path: Path) -> None:
    """Of another name for this one: the worker is started by its file, and nothing differs."""
    (tmp_path / "model.py").write_text(MODEL)
    python = tmp_path / "other" / "bin" / "python"
    venv.create(tmp_path / "other", with_pip=False)
    done = tcw(tmp_path, "diff", "model.py", "--python-a", str(python))
    assert done.code == 2
    assert "it has no torch" in done.err
    where = Path(torch.__file__).parents[1]
    (site,) = (tmp_path / "other").glob("lib/python*/site-packages")
    (site / "torch.pth").write_text(f"{where}\n")
    done = tcw(tmp_path, "diff", "model.py", "--python-a", str(python), *OPTIONS, COLUMNS="160")
    assert done.code == 0, done.err
    assert done.out.startswith(
        f"Nothing changed: model.py with torch {torch.__version__.partition('+')[0]}"
    )


def test_an_interpreter_that_cannot_record_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("raise SystemExit(9)")
    done = tcw(tmp_path, "diff", "model.py", "--python-a", "nowhere/python")
    assert done.code == 2
    assert "does not start: No such file" in done.err
    (tmp_path / "a.tcw").write_text("")
    done = tcw(tmp_path, "diff", "a.tcw", "model.py", "--python-a", sys.executable)
    assert done.code == 2
    assert "is a trace" in done.err


@pytest.mark.parametrize(
    "interpreter", [(), pytest.param(("--python-a", sys.executable), marks=pytest.mark.long)]
)
def test_calls_of_both_sides_are_timed_in_turn(
    interpreter: tuple[str, ...], tmp_path: Path
) -> None:
    """Each in a process of its own, that is there until the last turn: a revision, recorded with an
    interpreter that is named, and the file as it is."""
    model = """\
import torch

def model(x):
    for _ in range(TIMES):
        x = torch.mm(x, x) * 0.01
    return x

example_inputs = (torch.randn(160, 160),)
"""
    file = tmp_path / "model.py"
    file.write_text(model.replace("TIMES", "1"))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "model.py")
    git(tmp_path, "commit", "-qm", "one")
    file.write_text(model.replace("TIMES", "4"))
    sides = ("--base", "HEAD", "model.py", *interpreter)
    done = tcw(tmp_path, "diff", *sides, "--measure", "--json", *OPTIONS)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    jsonschema.validate(found, schemas.DIFF)
    times = found["times"]
    assert times["reason"] == ""
    assert times["outcome"] in ("slower", "in noise", "faster")
    assert times["after"] > 0
    assert times["before"] > 0
    assert times["noise"] > 0
    assert times["turns"] >= FEWEST
    assert not list(tmp_path.glob(f"{CACHES_PREFIX}*"))
