"""Where a driven compile stops on the way to the next thing: records in, reasons out."""

from __future__ import annotations

import pytest

from tcw.compiler.protocol.commands import Mode
from tcw.compiler.protocol.stops import StopPoint, Stops
from tcw.compiler.trace.records import (
    CallStart,
    PassChange,
    Progress,
    StageStart,
    Text,
)
from tests.no_torch.protocol.stopping import (
    LINE,
    at,
    decision,
    end,
    frame,
    graph,
    run_on,
    standing,
    step,
    stepped,
)


def test_an_instruction_is_the_next_into_inlined_functions() -> None:
    stops = standing(frame(), step(5))
    assert stepped(stops, "instruction", [Progress(stage="capture", activity="")]) is None
    assert stepped(stops, "instruction", [step(90, depth=1)]) == 0


def test_over_passes_what_is_inlined() -> None:
    inlined = [step(90, depth=1), step(91, depth=1), step(95, depth=2), step(92, depth=1)]
    stops = standing(frame(), step(5))
    assert stepped(stops, "over", [*inlined, step(5), step(6)]) == 4
    stops = standing(frame(), step(5), step(90, depth=1))
    assert stepped(stops, "over", [step(91, depth=1)]) == 0
    stops = standing(frame(), step(5), step(90, depth=1))
    assert stepped(stops, "over", [step(5)]) == 0, "the function has returned"


def test_over_passes_the_generator_that_is_drawn_from_next_to_this_one() -> None:
    """`for a, b in zip(one(), two())`: both stand at one depth, and the loop draws from each."""
    one, other = step(90, 1, frame=1), step(90, 1, frame=2)
    for mode in ("over", "line"):
        stops = standing(frame(), step(5, frame=0), one)
        assert stepped(stops, mode, [other, step(91, 1, frame=2), step(5, frame=0)]) == 2
        stops = standing(frame(), step(5, frame=0), one)
        assert stepped(stops, mode, [other, step(91, 1, frame=1), step(5, frame=0)]) == 1
    stops = standing(frame(), step(5, frame=0), one)
    assert stepped(stops, "out", [other, step(91, 1, frame=1), step(5, frame=0)]) == 2


def test_out_is_after_the_return() -> None:
    stops = standing(frame(), step(5), step(90, depth=1))
    assert stepped(stops, "out", [step(91, depth=1), step(95, depth=2), step(5), step(6)]) == 2


def test_out_of_the_frame_itself_is_its_end() -> None:
    stops = standing(frame(), step(5))
    assert stepped(stops, "out", [step(6), graph("0/0", "captured"), end(), frame("1/0")]) == 2


def test_a_line_is_the_next_user_line_at_this_depth_or_above() -> None:
    stops = standing(frame(), step(5))
    assert stepped(stops, "line", [step(5), step(90, depth=1), step(5), step(6)]) == 3
    stops = standing(frame(), step(5), step(90, depth=1))
    assert stepped(stops, "line", [step(90, depth=1), step(5)]) == 1


@pytest.mark.parametrize("mode", ["over", "line"])
def test_a_restart_of_the_frame_stops_at_its_first_instruction(mode: Mode) -> None:
    stops = standing(frame(), step(5), step(6))
    stops.go(mode)
    found = run_on(stops, [step(90, depth=1), frame(attempt=1), step(5, attempt=1)])
    assert found is not None
    assert found[0] == 2
    assert "attempt 2 of 0/0" in found[1].why


def test_out_goes_on_over_a_restart() -> None:
    stops = standing(frame(), step(5))
    again = [frame(attempt=1), step(5, attempt=1), step(90, depth=1, attempt=1), end()]
    assert stepped(stops, "out", again) == 3


def test_a_nested_compile_is_stepped_over() -> None:
    nested = [frame("1/0"), step(30, compile_id="1/0"), end("1/0")]
    stops = standing(frame(), step(5))
    assert stepped(stops, "over", [*nested, step(6)]) == 3
    stops = standing(frame(), step(5))
    assert stepped(stops, "instruction", [*nested, step(6)]) == 1
    stops = standing(frame(), step(5), *nested[:2])
    assert stepped(stops, "out", [step(31, compile_id="1/0"), nested[2]]) == 1


def test_the_next_frame_follows_the_end_of_this_one() -> None:
    stops = standing(frame(), step(5))
    assert stepped(stops, "over", [end(), frame("1/0"), step(9, compile_id="1/0")]) == 2
    stops = standing(frame(), step(5))
    later = [frame(attempt=1), step(5, attempt=1), end(), frame("1/0")]
    assert stepped(stops, "frame", later) == 3


def test_graph_pass_stage() -> None:
    change = PassChange(graph="0/0/joint", name="remove_noop", before="", after="")
    records = [
        frame(),
        step(5),
        graph("0/0", "captured"),
        StageStart(stage="autograd", compile_id="0/0"),
        change,
        graph("0/0/forward", "forward"),
        StageStart(stage="lowering", compile_id="0/0", graph="0/0/forward"),
    ]
    assert stepped(Stops(), "graph", records) == 2
    assert stepped(Stops(), "pass", records) == 4
    assert stepped(Stops(), "stage", records) == 0
    assert stepped(Stops(), "stage", records[1:]) == 2
    stops = Stops()
    stops.go("pass")
    found = run_on(stops, records)
    assert found is not None
    assert (found[1].kind, found[1].why) == ("pass", "next pass: remove_noop")


def test_the_place_is_that_of_the_last_record() -> None:
    stops = standing(
        CallStart(call=1), frame(attempt=0), frame(attempt=1), step(5, attempt=1),
    )  # fmt: skip
    assert (stops.place.stage, stops.place.compile_id, stops.place.attempt) == ("capture", "0/0", 1)
    assert stops.place.location == at(5)
    stops.after(StageStart(stage="fusion", compile_id="0/0", graph="0/0/forward"))
    assert (stops.place.stage, stops.place.graph, stops.place.location) == (
        "fusion",
        "0/0/forward",
        None,
    )


def test_the_cursor_is_a_breakpoint_of_one_go() -> None:
    stops = Stops()
    stops.go("cursor", LINE)
    assert run_on(stops, [frame(), step(4), step(5)]) == (
        2,
        StopPoint("breakpoint", "run to cursor"),
    )
    stops.go("continue")
    assert run_on(stops, [step(6), step(5)]) is None


def test_a_pause_stops_at_the_next_place() -> None:
    stops = Stops()
    stops.pause()
    assert run_on(stops, [Text(hash="", body=""), step(5), step(6)]) == (
        1,
        StopPoint("step", "paused"),
    )
    assert run_on(stops, [step(7)]) is None
    stops.pause()
    assert stops.decision(decision("exp", "sum")) == StopPoint("decision", "paused")
