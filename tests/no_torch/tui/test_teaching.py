"""Predict, presenter and notes, at the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.protocol.commands import Answer, Go
from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import Note
from tcw.viewers.teaching.notes import notes_of
from tcw.workbench.tui.notes import Writing
from tests.no_torch.tui.conftest import Drive, Open, Reader
from tests.no_torch.tui.driven import FUSE


@pytest.fixture
def own_block(block_file: Path, tmp_path: Path) -> Path:
    """A copy that notes may be put into."""
    path = tmp_path / "block.tcw"
    path.write_bytes(block_file.read_bytes())
    return path


async def _predict(reader: Reader) -> None:
    await reader.bench.predicting.predict()
    await reader.settle()


async def test_the_outcome_is_hidden_until_the_guess(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await _predict(reader)
        quiz = reader.bench.predicting.quiz
        question = quiz.question
        assert question is not None
        assert reader.bench.view.playhead == question.position
        text = reader.text()
        assert "Will the compiler fuse A and B?" in text
        assert "with nodes between" not in text
        assert question.id not in text
        await reader.press("question_mark")
        assert "hint: both touch" in reader.text()
        await reader.press("n")
        text = reader.text()
        assert "✓ Right: they are kept apart" in text
        assert "with nodes between" in text
        await reader.press("space")
        assert quiz.question is not None
        assert quiz.question.id != question.id
        assert reader.bench.view.hidden


async def test_other_keys_tell_nothing_while_a_question_is_open(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        await _predict(reader)
        for key in ("f", "greater_than_sign", "O", "s", "o", "R", "enter"):
            await reader.press(key)
            assert "with nodes between" not in reader.text()
            assert reader.bench.navigator.arrangement == "predict"


async def test_the_score_says_what_was_missed(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await _predict(reader)
        for key in ("y", "n", "minus"):
            await reader.press(key, "space")
        await reader.press("escape")
        text = reader.text()
        assert reader.bench.navigator.arrangement == "score"
        assert "1 of 2 right, 1 skipped" in text
        assert "you: fused   it is kept apart" in text
        assert reader.bench.view.playhead == 0
        assert not reader.bench.view.presenting


@pytest.mark.long
async def test_every_question_can_be_answered(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        reader.bench.predicting.questions = 0
        await _predict(reader)
        count = len(reader.bench.predicting.truths.askable())
        for _ in range(count):
            assert reader.bench.predicting.quiz.question is not None
            await reader.pilot.press("n")
            await reader.pilot.press("space")
        await reader.until(lambda: reader.bench.navigator.arrangement == "score")
        assert reader.bench.predicting.quiz.scored == count


async def test_presenter(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("fusion")
        await reader.press("p")
        assert [pane.pane for pane in reader.bench.panes()] == ["source", "loops-a", "loops-b"]
        lines = reader.lines()
        assert not any("call 1" in line for line in lines)
        pane = reader.pane("loops-a")
        assert pane.spacing == 2
        await reader.press("p")
        assert reader.pane("loops-a").spacing == 1
        assert reader.bench.spine.display


async def test_a_presenter_can_show_every_arrangement(open_trace: Open, block_file: Path) -> None:
    from tcw.workbench.tui.hints import GOES

    async with open_trace(block_file) as reader:
        await reader.press("p")
        for name, _ in GOES:
            await reader.go(name)
            assert reader.cells() == [120] * 40, name


async def _write(reader: Reader, words: str) -> None:
    await reader.press("m")
    assert isinstance(reader.app.screen, Writing)
    reader.app.screen.area.text = words
    await reader.press("ctrl+s")


async def test_a_note_is_written_edited_and_deleted(open_trace: Open, own_block: Path) -> None:
    async with open_trace(own_block) as reader:
        await reader.press("1")
        await reader.go("source")
        on = reader.bench.view.ref
        await _write(reader, "why twice?\n\x1b[31mred\u202e")
        await reader.until(lambda: bool(reader.bench.recording.all(Note)))
        await reader.settle()
        assert '"' in reader.pane("source").row.text
        await reader.go("notes")
        assert "  why twice?" in reader.text()
        assert all(line.isprintable() for line in reader.lines())
        await reader.press("escape")
        assert notes_of(reader.bench.recording)[on].text.startswith("why twice?")
        await reader.press("m")
        assert isinstance(reader.app.screen, Writing)
        assert reader.app.screen.area.text.startswith("why twice?")
        await reader.press("escape")
        await _write(reader, "")
        await reader.until(lambda: not notes_of(reader.bench.recording))
    found = read_trace(own_block)
    assert found.complete
    assert [r.text for r in found.records if isinstance(r, Note)][-1] == ""


async def test_a_long_note_is_kept_to_its_limit(open_trace: Open, own_block: Path) -> None:
    async with open_trace(own_block, (80, 24)) as reader:
        await reader.go("source")
        await _write(reader, "word " * 4_000)
        await reader.until(lambda: bool(reader.bench.recording.all(Note)))
        await reader.go("notes")
        assert reader.cells() == [80] * 24
        note = reader.bench.recording.all(Note)[-1]
        assert len(note.text) == 10_000


async def test_a_note_on_a_decision(open_trace: Open, own_block: Path) -> None:
    async with open_trace(own_block) as reader:
        await reader.go("fusion")
        pair = reader.pane("fusion").row.decision
        await _write(reader, "this is the lesson")
        await reader.until(lambda: bool(reader.bench.recording.all(Note)))
        assert reader.bench.recording.all(Note)[-1].on == f"decision:{pair}"
        await reader.go("notes")
        assert "this is the lesson" in reader.text()


async def test_a_note_that_cannot_be_kept_says_so(
    open_trace: Open, own_block: Path, tmp_path: Path
) -> None:
    async with open_trace(own_block) as reader:
        await reader.go("source")
        own_block.rename(tmp_path / "away.tcw")
        await _write(reader, "words")
        assert "the note is not kept" in reader.text()
        assert not reader.bench.recording.all(Note)


async def test_only_pairs_of_a_node(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("fusion")
        await reader.press("ampersand")
        await reader.type("div")
        await reader.press("enter")
        assert "with div" in reader.text()
        await reader.press("ampersand", "ctrl+u", "enter")
        assert "with div" not in reader.text()


async def test_a_driven_compile_asks_where_it_waits(drive: Drive) -> None:
    async with drive() as driver:
        bench = driver.bench
        bench.predicting.predict_first = True
        await driver.press("d")
        await driver.until(lambda: bench.predicting.quiz.question is not None)
        await driver.settle()
        text = driver.text()
        assert "Will the compiler fuse A and B?" in text
        assert "B reads what A writes" not in text
        assert "shared bytes" not in text
        await driver.press("v")
        assert not any(isinstance(command, Answer) for command in driver.sent)
        await driver.press("y")
        assert "✓ Right: they are fused" in driver.text()
        assert "B reads what A writes" in driver.text()
        await driver.press("space")
        assert driver.sent[-1] == Go(mode="fusion")
        await driver.until(lambda: bench.navigator.arrangement == "score")
        assert "1 of 1 right" in driver.text()


async def test_predict_goes_to_the_first_fusion_by_itself(drive: Drive) -> None:
    async with drive() as driver:
        await driver.choose("predict how")
        assert driver.sent[-1] == Go(mode="fusion")
        await driver.until(lambda: driver.bench.predicting.quiz.question is not None)


async def test_a_dull_pair_of_a_driven_compile_is_passed(drive: Drive) -> None:
    async with drive(asked={"default": "apart", "rule": "no-shared-data"}) as driver:
        driver.bench.predicting.predict_first = True
        await driver.press("d")
        await driver.until(lambda: driver.sent[-1] == Go(mode="fusion"))
        assert driver.bench.predicting.quiz.question is None


async def test_a_note_of_a_driven_compile_goes_through_its_writer(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d")
        await driver.press("m")
        assert isinstance(driver.app.screen, Writing)
        driver.app.screen.area.text = "ask why"
        await driver.press("ctrl+s")
        await driver.until(lambda: bool(driver.bench.recording.all(Note)))
        note = driver.bench.recording.all(Note)[-1]
        assert (note.on, note.text, note.run) == (f"decision:{FUSE}", "ask why", 1)
