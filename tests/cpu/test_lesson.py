"""`docs/lesson-fusion.md` stays true: its keys are pressed, and its screens are what comes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import torch

from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tests.conftest import Golden
from tests.cpu.lesson import Session, opened, press, sessions, with_blocks
from tests.long import mostly_long

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "lesson-fusion.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = re.compile(r"^```sh\n(.*?)```$", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="the page shows what torch 2.13 does"
)


PREDICTED = next(at for at, session in enumerate(sessions(TEXT)) if "--predict" in session.command)
"""The session with most screens."""


@pytest.mark.parametrize("number", mostly_long(range(len(sessions(TEXT))), (PREDICTED,)))
async def test_the_screens_are_what_comes(
    number: int, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = await _run(sessions(text)[number])
    golden(PAGE, with_blocks(text, made))


async def _run(session: Session) -> list[tuple[tuple[int, int], str]]:
    made = []
    async with opened(session.command, ROOT) as reader:
        for screen in session.screens:
            text = await press(reader, screen)
            if screen.shown:
                made.append((screen.place, text))
    return made


def test_every_command_that_is_run_is_one_that_the_reader_is_told() -> None:
    told = [line for block in COMMANDS.findall(TEXT) for line in block.splitlines()]
    assert [session.command for session in sessions(TEXT)] == [
        line for line in told if line.startswith("tcw step")
    ]


def test_the_override_splits_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = re.search(r"^```toml\n(.*?)```$", TEXT, re.DOTALL | re.MULTILINE)
    assert written is not None
    (tmp_path / "apart.toml").write_text(written[1])
    command = next(line for line in TEXT.splitlines() if "--override apart.toml" in line)
    words = shlex.split(command.replace("sample_models", str(ROOT / "sample_models")))
    monkeypatch.chdir(tmp_path)
    assert main(words[1:]) == codes.OK
    said = capsys.readouterr().out
    assert "2 kernels" in said
    assert "k1" in said
