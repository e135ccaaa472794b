"""What a click does at the edges of the screen, in the bar and on the rows of a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.protocol.commands import Answer
from tcw.compiler.protocol.decision import APART
from tests.no_torch.tui.conftest import Drive, Open, Reader
from tests.no_torch.tui.driven import FUSE, forbidden


@pytest.mark.parametrize(
    ("words", "arrangement"), [("✗2", "break"), ("breaks", "break"), ("↻", "recompiles"),
     ("recompiles", "recompiles"), ("block.py", "overview"), ("replay", "overview")],
)  # fmt: skip
async def test_a_count_in_the_header_leads_to_what_it_counts(
    open_trace: Open, block_file: Path, words: str, arrangement: str
) -> None:
    async with open_trace(block_file) as reader:
        start = "guards"
        await reader.bench.show(start)
        await reader.settle()
        at = reader.lines()[0].index(words)
        await reader.pilot.click("#header", offset=(at, 0))
        await reader.settle()
        assert reader.bench.navigator.arrangement == arrangement


async def test_every_row_of_a_finding_opens_it(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        rows = reader.lines()
        first = next(y for y, row in enumerate(rows) if " ↻ " in row and " s  " in row)
        last = next(y for y in range(first, len(rows)) if not rows[y][12:].strip(" │"))
        assert last - first >= 3
        for y in range(first, last):
            await reader.pilot.click(offset=(40, y), times=2)
            await reader.settle()
            assert reader.bench.navigator.arrangement == "recompiles", rows[y]
            await reader.press("escape")
            assert reader.bench.navigator.arrangement == "overview"


async def click_words(reader: Reader, words: str) -> None:
    """Click the middle of these words, where they first stand on the screen."""
    lines = reader.lines()
    y = next(y for y, line in enumerate(lines) if words in line)
    await reader.pilot.click(offset=(lines[y].index(words) + len(words) // 2, y))
    await reader.settle()


@pytest.mark.parametrize(
    ("words", "choice"), [("a accept", ""), ("v veto", APART), ("keep apart, on", APART)]
)
async def test_the_buttons_of_a_decision_answer_it(drive: Drive, words: str, choice: str) -> None:
    async with drive() as driver:
        await driver.press("d")
        await click_words(driver, words)
        assert driver.sent[-1] == Answer(id=FUSE, choice=choice)


async def test_a_button_that_does_nothing_here_says_why(drive: Drive) -> None:
    changes = {"default": "apart", "rule": "domain", "forbidden": (forbidden(),)}
    async with drive(asked=changes) as driver:
        await driver.press("d")
        await click_words(driver, "f force")
        assert "fuse refused: rule domain" in driver.text()


@pytest.mark.parametrize(
    ("words", "tells"),
    [("n kept apart", "Right: they are kept apart"), ("? hint", "hint: both touch")],
)
@pytest.mark.parametrize("last", [False, True])
async def test_a_guess_is_made_in_the_bar_and_in_the_footer(
    open_trace: Open, block_file: Path, words: str, tells: str, last: bool
) -> None:
    async with open_trace(block_file) as reader:
        await reader.bench.predicting.predict()
        await reader.settle()
        rows = [y for y, line in enumerate(reader.lines()) if words in line]
        y = rows[-1] if last else rows[0]
        assert (y == len(reader.lines()) - 1) == last
        at = reader.lines()[y].index(words)
        await reader.pilot.click(offset=(at, y))
        await reader.settle()
        assert tells in reader.text()


async def test_the_quiz_goes_on_by_its_buttons(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.bench.predicting.predict()
        await reader.settle()
        await click_words(reader, "n kept apart")
        await click_words(reader, "space next")
        assert len(reader.bench.predicting.quiz.guesses) == 1
        assert reader.bench.predicting.quiz.question is not None
        await click_words(reader, "- skip")
        await click_words(reader, "esc the score")
        assert reader.bench.navigator.arrangement == "score"
