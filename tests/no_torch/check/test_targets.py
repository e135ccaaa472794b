"""`tcw.toml` and `[tool.tcw.check]`: what they may say, and what a mistake is told."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import click
import pytest

from tcw.viewers.summary.budget import Tolerance
from tcw.viewers.words import NOT_IN_LOG
from tcw.workbench.check import budget_file
from tcw.workbench.check.runs import changed_since, reached_files
from tcw.workbench.check.targets import NoProject, find, read
from tcw.workbench.cli.main import main


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text("")
    (tmp_path / ".git").mkdir()
    return tmp_path


def written(project: Path, text: str, name: str = "tcw.toml") -> Path:
    file = project / name
    file.write_text(text)
    return file


def test_a_target_has_the_options_of_explain(project: Path) -> None:
    file = written(
        project,
        """
[tolerance]
kernels = 1
[targets.block]
file = "model.py::Net(4)"
inputs = ["f32[8,64]", "f32[16,64]"]
train = true
engine = "tcw"
arch = "sm_90"
mark-dynamic = "x:0"
fused = ["softmax + add"]
[targets.block.tolerance]
memory-peak = "2%"
[targets.plain]
file = "model.py"
""",
    )
    block, plain = read(file).targets
    settings = block.settings
    assert settings.model == "Net(4)"
    assert settings.inputs == ("f32[8,64]", "f32[16,64]")
    assert (settings.grad, settings.engine, settings.arch) == ("train", "tcw", "sm_90")
    assert settings.mark_dynamic == ("x:0",)
    assert block.fused == ("softmax + add",)
    assert block.tolerances == {
        "kernels": Tolerance(absolute=1.0),
        "memory peak": Tolerance(relative=0.02),
    }
    assert (plain.settings.model, plain.settings.grad) == ("", "grad")
    assert [target.name for target in read(file, ("plain",)).targets] == ["plain"]


def test_in_a_pyproject(project: Path) -> None:
    file = written(project, '[tool.tcw.check.targets.a]\nfile = "model.py"\n', "pyproject.toml")
    inner = project / "inner"
    inner.mkdir()
    assert find(inner) == file
    assert [target.name for target in read(file).targets] == ["a"]
    own = written(project, '[targets.b]\nfile = "model.py"\n')
    assert find(inner) == own


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[targets.a]\n", "target a has no `file`"),
        ('[targets.a]\nfile = "gone.py"\n', "there is no file gone.py"),
        ('[targets.a]\nfile = "../model.py"\n', "outside the project"),
        ('[targets.a]\nfile = "/etc/passwd"\n', "outside the project"),
        ('[targets.a]\nfile = "model.py"\ntrian = true\n', "Did you mean 'train'?"),
        ('[targets.a]\nfile = "model.py"\ntrace = "x.tcw"\n', "no option 'trace'"),
        ('[targets.a]\nfile = "model.py"\nengine = "both"\n', "give one engine"),
        ('[targets.a]\nfile = "model.py"\nengine = 3\n', "engine"),
        ('[targets.a]\nfile = "model.py"\nfused = "x"\n', "must be a list"),
        ('[targets.a]\nfile = "model.py"\n[tolerance]\nkernels = "x"\n', "expected a number"),
        ("[tolerance]\nkernles = 1\n", "no fact 'kernles'. Did you mean 'kernels'?"),
        ("[tolerance]\nxyz = 1\n", "no fact 'xyz'. docs/check.md lists the facts"),
        ("[target.a]\n", "unknown key 'target': expected targets or tolerance"),
        ("targets = 3\n", "targets must be a table"),
        ("[", "tcw.toml"),
    ],
)
def test_a_mistake_is_told(project: Path, text: str, words: str) -> None:
    with pytest.raises(click.UsageError) as told:
        read(written(project, text))
    assert words in told.value.message
    assert str(project) in told.value.message


def test_an_unknown_target(project: Path) -> None:
    file = written(project, '[targets.block]\nfile = "model.py"\n')
    with pytest.raises(click.UsageError, match="Did you mean 'block'"):
        read(file, ("blok",))


def test_no_project(project: Path) -> None:
    with pytest.raises(NoProject, match=r"no tcw\.toml and no \[tool\.tcw\.check\]"):
        find(project)
    with pytest.raises(NoProject, match=r"has no \[targets\.NAME\]"):
        read(written(project, ""))


def test_a_file_that_others_can_write_is_not_followed(project: Path) -> None:
    file = written(project, '[targets.a]\nfile = "model.py"\n')
    file.chmod(0o666)
    with pytest.raises(NoProject, match="writable by others"):
        read(file)


def test_a_link_out_of_the_project_is_outside(project: Path, tmp_path_factory: object) -> None:
    (project / "link.py").symlink_to("/etc/passwd")
    with pytest.raises(click.UsageError, match="outside the project"):
        read(written(project, '[targets.a]\nfile = "link.py"\n'))


def test_imports_are_followed_through_the_project(project: Path) -> None:
    package = project / "lib"
    package.mkdir()
    texts = {
        "lib/__init__.py": "from .inner import x\n",
        "lib/inner.py": "import os\nfrom . import deep\n",
        "lib/deep.py": "def f():\n    import lib.late\n",
        "lib/late.py": "import not_there\n",
        "lib/unused.py": "",
        "model.py": "from lib import inner\n",
        "broken.py": "def (",
        "other.py": "import broken\nimport lib.unused as u\n",
    }
    for name, text in texts.items():
        (project / name).write_text(text)

    def names(file: str) -> set[str]:
        return {
            str(reached_file.relative_to(project))
            for reached_file in reached_files(project / file, project)
        }

    assert names("model.py") == {
        "model.py", "lib/__init__.py", "lib/inner.py", "lib/deep.py", "lib/late.py",
    }  # fmt: skip
    assert {"broken.py", "lib/unused.py"} < names("other.py")


def test_an_import_of_what_is_gone_is_followed(project: Path) -> None:
    (project / "model.py").write_text("import helper\n")
    gone = {project / "helper.py", project / "other.py"}
    assert reached_files(project / "model.py", project, gone) & gone == {project / "helper.py"}


def test_changed_since(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that is edited, one that is deleted, and a fact that is accepted otherwise."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    names = ("edited", "gone", "accepted", "same")
    for name in names:
        (project / f"{name}_helper.py").write_text("")
        (project / f"{name}.py").write_text(f"import {name}_helper\n")
    targets = "".join(f'[targets.{name}]\nfile = "{name}.py"\n' for name in names)
    read_project = read(written(project, targets))
    budget = project / budget_file.NAME
    accepted = "".join(f'[{name}]\ntorch = "2.13"\ngraphs = 1\n' for name in names)
    budget.write_text(accepted)

    def touched() -> list[str]:
        now = budget_file.read(budget)
        return [one.name for one in changed_since(read_project, "HEAD", budget, now)]

    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    assert touched() == []
    (project / "edited_helper.py").write_text("x = 1")
    (project / "gone_helper.py").unlink()
    budget.write_text(accepted.replace("[accepted]\n", "[accepted]\nkernels = 3\n"))
    assert touched() == ["edited", "gone", "accepted"]
    written(project, targets + "[tolerance]\nkernels = 1\n")
    assert touched() == list(names)


LOG = Path(__file__).parents[1] / "torch_logs" / "torch-2.13.log.gz"


def test_a_recording_is_read_and_nothing_is_run(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "out").mkdir()
    log = project / "out" / "train.log.gz"
    log.write_bytes(LOG.read_bytes())
    text = '[targets.train]\nrecording = "out"\nfused = ["softmax + add"]\n'
    (target,) = read(written(project, text)).targets
    assert (target.file, target.settings) == (log, None)
    monkeypatch.chdir(project)
    assert main(["check", "--accept"]) == 0
    accepted = (project / "tcw.budget.toml").read_text()
    assert "graphs = 2\ngraph-breaks = 1\nrecompiles = 3\n" in accepted
    assert f'"softmax + add" = "{NOT_IN_LOG}"' in accepted
    assert not any(f"{name} =" in accepted for name in ("loop-nests", "bytes-moved", "memory-peak"))
    assert main(["check"]) == 0
    capsys.readouterr()
    changed = accepted.replace("graph-breaks = 1", "graph-breaks = 0")
    (project / "tcw.budget.toml").write_text(changed)
    assert main(["check"]) == 1
    assert "graph breaks 0 → 1" in capsys.readouterr().out
    log.write_bytes(gzip.compress(gzip.decompress(LOG.read_bytes())[:300_000]))
    assert main(["check"]) == 1
    assert "the recording is cut off" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('recording = "out"', "there is no recording out"),
        ('recording = "model.py"\ntrain = true', "train says how to record"),
        ('recording = "model.py"\nfile = "model.py"', "no `file`, or `recording` instead"),
        ('recording = "."', "has several recordings, or none"),
        ('recording = "/tmp"', "outside the project"),
    ],
)
def test_a_recording_that_cannot_be_meant(project: Path, text: str, said: str) -> None:
    with pytest.raises(click.UsageError, match=re.escape(said)):
        read(written(project, f"[targets.train]\n{text}\n"))
