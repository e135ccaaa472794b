"""Going back in time only reads, and comes back."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    GraphBreak,
    Kernel,
    Resumed,
    Run,
)
from tcw.viewers.recording import Recording
from tcw.viewers.timeline import Playhead
from tests.no_torch.both_engines import both_engines_trace
from tests.no_torch.tui.conftest import Drive, Open, encoded
from tests.no_torch.tui.driven import (
    asked,
    at_decision,
    compile_records,
    frame,
    head,
    settings_of,
    step,
)


async def test_back_and_forth_by_record_and_stage(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        bench = reader.bench
        assert bench.scrubbing.place() == 598
        await reader.press("less_than_sign", "less_than_sign")
        back = bench.view.playhead
        assert 0 < back < 598
        assert f"record {back} / 598" in reader.text()
        await reader.press("greater_than_sign")
        assert bench.view.playhead > back
        await bench.scrubbing.go_to(7)
        await reader.press("right_curly_bracket")
        before = bench.view.playhead
        await reader.press("right_curly_bracket", "right_curly_bracket", "right_curly_bracket")
        assert bench.view.track.stage_at(bench.view.playhead) == "autograd"
        await reader.press("left_curly_bracket", "left_curly_bracket", "left_curly_bracket")
        assert bench.view.playhead == before
        await reader.press("end")
        assert bench.view.playhead == 0
        assert len(bench.view.recording.records) == 598


async def test_what_is_shown_is_what_was_known_then(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        bench = reader.bench
        records = bench.recording.records
        breaks = [i for i, record in enumerate(records) if isinstance(record, GraphBreak)]
        await bench.scrubbing.go_to(breaks[0] + 1)
        assert "✗1 break " in reader.text()
        await bench.scrubbing.go_to(breaks[0])
        assert "break " not in reader.lines()[0]
        await bench.scrubbing.go_to(len(records))
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
        assert "compare with run 1" in driver.text()
        await driver.press("down", "down", "enter")
        assert list(driver.bench.view.overrides.values()) == ["apart"]
        assert "w compiles again" in driver.lines()[-1]
        await driver.press("w")
        assert driver.bench.view.run == 2


async def test_a_replay_stops_where_the_compile_would_have(
    open_trace: Open, tmp_path: Path
) -> None:
    records: list[AnyRecord] = [*head(), frame()]
    for number in range(30):
        records += [Resumed(command="step"), *step(number, 15 + number // 5)]
    records += [Resumed(command="decision"), *compile_records(), *at_decision(asked())]
    path = tmp_path / "driven.tcw"
    path.write_bytes(encoded([*records, End(status="ok", seconds=3.0)]))
    async with open_trace(path) as reader:
        bench = reader.bench
        await bench.scrubbing.go_to(7)
        seen = []
        for key in ("s", "s", "L", "L", "d"):
            await reader.press(key)
            seen.append((bench.recording.records[bench.view.playhead - 1], key))
        kinds = [type(record).__name__ for record, _ in seen]
        assert kinds == ["Step", "Step", "Step", "Step", "Decided"]
        assert [r.location.line for r, _ in seen[:4]] == [15, 15, 16, 17]  # type: ignore[union-attr]
        await reader.press("greater_than_sign")
        assert "Fuse A and B?" in reader.text()
        await reader.press("c")
        assert bench.view.playhead == 0
        assert "end of the trace" in reader.lines()[-1]
        await reader.press("w")
        assert "/home/ada/block.py does not exist" in reader.text()


def test_a_playhead_answers_the_same_as_reading_anew() -> None:
    records = both_engines_trace()
    records[40:40] = [Run(number=1, settings=settings_of())]
    records[300:300] = [Run(number=2, settings=settings_of(mode="max-autotune"))]
    whole = Recording(records)
    playhead = Playhead(whole)
    for position in (5, 100, 41, 400, 399, 299, 301, 0, len(records), 200):
        found, anew = playhead.at(position), Recording(records[:position])
        assert found.records == anew.records
        assert list(found.runs) == list(anew.runs)
        for number, run in anew.runs.items():
            assert found.runs[number].records == run.records
            assert list(found.runs[number].engines) == list(run.engines)
            for engine, part in run.engines.items():
                assert found.runs[number].engines[engine].records == part.records
        for record in records[:position]:
            assert found.place(record) == anew.place(record)
    assert whole.records == records
