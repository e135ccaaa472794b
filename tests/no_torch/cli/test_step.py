"""`tcw step`: what the workbench is started with. The workbench is a stub."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.trace.records import Settings
from tcw.viewers.teaching.predict import QUESTIONS
from tcw.workbench.cli.main import main
from tcw.workbench.request import codes


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Any, ...]]:
    """What `run_live` was given."""
    import tcw.workbench.tui

    given: list[tuple[Any, ...]] = []

    def run_live(*arguments: Any, questions: int, ascii_only: bool) -> int:
        assert (questions, ascii_only) == (QUESTIONS, False)
        given.append(arguments)
        return 0

    module = ModuleType("tcw.workbench.tui.app")
    module.run_live = run_live  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tcw.workbench.tui.app", module)
    monkeypatch.setattr(tcw.workbench.tui, "app", module, raising=False)
    monkeypatch.setenv("TEXTUAL_DRIVER", "stub")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("model = 1\n")
    return given


def test_options_become_settings_and_breakpoints(
    started: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    overrides = tmp_path / "mine.toml"
    overrides.write_text(
        '"inductor/0/0/forward/fuse/a+b" = "apart"\n"tcw/0/0/joint/save/c" = "save"\n'
    )
    code = main(
        ["step", "model.py", "--engine", "tcw", "--train", "--override", "mine.toml", "--predict",
         "--break", "4", "--break", "first-rejection", "--trace", "run.tcw", "--", "--width", "8"]
    )  # fmt: skip
    assert code == codes.OK
    ((settings, trace, predict, breakpoints),) = started
    assert settings == Settings(
        file=str(tmp_path / "model.py"),
        engine="tcw",
        grad="train",
        overrides={"inductor/0/0/forward/fuse/a+b": "apart", "tcw/0/0/joint/save/c": "save"},
        arguments=("--width", "8"),
    )
    assert (trace, predict) == (Path("run.tcw"), True)
    assert breakpoints == (
        Breakpoint(number=1, kind="line", file=str(tmp_path / "model.py"), line=4),
        Breakpoint(number=2, kind="rejection", once=True),
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--break", "rejections"], "Did you mean 'rejection'?"),
        (["--no-grad", "--train"], "exclude each other"),
        (["--trace", "model.py"], "a file that the run reads"),
        (["--until", "fusion"], "No such option"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(
    arguments: list[str],
    words: str,
    started: list[tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["step", "model.py", *arguments]) == codes.USAGE
    assert words in capsys.readouterr().err
    assert not started


def test_it_needs_a_terminal(
    started: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER")
    assert main(["step", "model.py"]) == codes.USAGE
    assert "needs a terminal" in capsys.readouterr().err
    assert not started
