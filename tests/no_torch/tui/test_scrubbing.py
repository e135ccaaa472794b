"""Going back in time only reads, and comes back."""

from __future__ import annotations

from pathlib import Path

from compiler.trace.records import GraphBreak, Kernel
from tests.no_torch.tui.conftest import Drive, Open


async def test_back_and_forth_by_record_and_stage(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        bench = reader.bench
        start = bench.place()
        await reader.press("greater_than_sign")
        assert bench.view.playhead > start
        assert f"record {bench.view.playhead} / 618" in reader.text()
        await reader.press("less_than_sign", "less_than_sign")
        assert bench.view.playhead < start
        await reader.press("right_curly_bracket")
        before = bench.view.playhead
        await reader.press("right_curly_bracket", "right_curly_bracket", "right_curly_bracket")
        assert bench.view.track.stage_at(bench.view.playhead) == "autograd"
        await reader.press("left_curly_bracket", "left_curly_bracket", "left_curly_bracket")
        assert bench.view.playhead == before
        await reader.press("end")
        assert bench.view.playhead == 0
        assert len(bench.view.recording.records) == 618


async def test_what_is_shown_is_what_was_known_then(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        bench = reader.bench
        records = bench.recording.records
        breaks = [i for i, record in enumerate(records) if isinstance(record, GraphBreak)]
        await bench.go_to(breaks[0] + 1)
        assert "✗1 break " in reader.text()
        await bench.go_to(breaks[0])
        assert "break " not in reader.lines()[0]
        await bench.go_to(len(records))
        assert bench.view.playhead == 0
        assert "✗2 breaks" in reader.text()


async def test_a_click_on_the_timeline_scrubs(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.pilot.click("#timeline", offset=(20, 0))
        await reader.settle()
        bench = reader.bench
        assert bench.view.playhead
        assert bench.view.compile_id == "0/0"
        assert len(bench.view.recording.all(Kernel)) < len(bench.recording.all(Kernel))


async def test_the_present_goes_on_while_the_reader_is_in_the_past(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("s", "s", "s", "d")
        count = driver.bench.view.track.count
        await driver.press("less_than_sign")
        assert driver.bench.view.playhead
        assert "record" in driver.lines()[-2]
        driver.driver.write([])
        await driver.press("full_stop")
        assert driver.bench.view.playhead == 0
        assert driver.bench.view.track.count == count
        assert "Fuse A and B?" in driver.text()
        assert "live" in driver.lines()[-2]


async def test_a_decision_in_the_past_is_overruled_for_the_next_run(drive: Drive) -> None:
    async with drive() as driver:
        await driver.press("d", "a")
        assert driver.bench.state == "finished"
        await driver.press("less_than_sign")
        while driver.bench.view.asked is None:
            await driver.press("less_than_sign")
        assert "Fuse A and B?" in driver.text()
        await driver.press("v")
        assert list(driver.bench.view.overrides.values()) == ["apart"]
        assert "w compiles again" in driver.lines()[-1]
        await driver.press("w")
        assert driver.bench.view.run == 2
