"""Where a driven compile stops for a breakpoint: records in, reasons out."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.protocol.stops import StopPoint, Stops
from tcw.compiler.trace.records import (
    CacheLookup,
    GraphBreak,
    Kernel,
    Lowered,
    Recompile,
    Record,
    Run,
    SchedulerNode,
    Settings,
    StageStart,
)
from tests.no_torch.protocol.stopping import (
    FILE,
    LINE,
    at,
    decision,
    frame,
    graph,
    node,
    run_on,
    step,
)


def test_a_line_is_come_to_in_each_frame_that_has_it() -> None:
    stops = Stops([Breakpoint(number=1, kind="line", file="model.py", line=90)])
    drawn = [step(90, 1, frame=1), step(90, 1, frame=1), step(90, 1, frame=2)]
    met = [index for index, one in enumerate([frame(), *drawn]) if stops.after(one)]
    assert met == [1, 3]


def test_a_line_stops_at_its_first_instruction_each_time_that_dynamo_comes_to_it() -> None:
    stops = Stops([LINE])
    seen = [frame(), step(4), step(5), step(5), step(90, depth=1), step(5), step(6), step(5)]
    assert [index for index, one in enumerate(seen) if stops.after(one)] == [2, 7]
    assert run_on(Stops([structs.replace(LINE, file="other.py")]), seen) is None
    assert run_on(Stops([structs.replace(LINE, enabled=False)]), seen) is None
    assert run_on(Stops([structs.replace(LINE, file=FILE)]), seen) is not None
    assert run_on(Stops([structs.replace(LINE, file="el.py")]), seen) is None


def test_a_line_stops_in_each_later_stage_at_the_first_thing_from_it() -> None:
    stops = Stops([LINE])
    records: list[Record] = [
        frame(),
        step(5),  # 1
        graph("0/0", "captured", node("exp", line=5)),
        graph("0/0/forward", "forward", node("exp", line=5), node("sum", line=6)),  # 3
        graph("0/0/forward/lowered", "lowered", node("exp", line=5), node("sum", line=6)),  # 4
        Lowered(graph="0/0/forward", node="sum", target="", ir="Reduction"),
        Lowered(graph="0/0/forward", node="exp", target="", ir="Pointwise"),  # 6
        SchedulerNode(graph="0/0/forward", name="op0", kind="", origins=("sum",), label=""),
        SchedulerNode(graph="0/0/forward", name="op1", kind="", origins=("exp",), label=""),  # 8
        SchedulerNode(graph="0/0/forward", name="op2", kind="", origins=("exp",), label=""),
        Kernel(
            id="k0", graph="0/0/forward", name="", label="", language="cpp", locations=(at(5),)
        ),  # 10
    ]
    assert [index for index, record in enumerate(records) if stops.after(record)] == [
        1,
        3,
        4,
        6,
        8,
        10,
    ]


def test_an_operation_by_part_of_its_name_or_target() -> None:
    stops = Stops([Breakpoint(number=2, kind="op", op="softmax")])
    records: list[Record] = [
        step(5, nodes=("relu",)),
        step(5, nodes=("softmax",)),  # 1
        graph("0/0", "captured", node("relu"), node("softmax")),  # 2
        graph("0/0/joint", "joint", node("x", target="aten._softmax.default")),  # 3
        graph("0/0/forward", "forward", node("exp")),
    ]
    assert [index for index, record in enumerate(records) if stops.after(record)] == [1, 2, 3]


def test_an_operation_stops_at_each_decision_about_it() -> None:
    stops = Stops([Breakpoint(number=2, kind="op", op="exp")])
    stops.after(SchedulerNode(graph="0/0/forward", name="op1", kind="", origins=("exp",), label=""))
    assert stops.decision(decision("exp", "sum"))
    assert not stops.decision(decision("relu", "sum"))
    assert stops.decision(decision("op1", "op2")), "op1 was made from exp"


def test_stages() -> None:
    fusion = Breakpoint(number=1, kind="stage", stage="fusion")
    records = [frame(), *(StageStart(stage=one) for one in ("autograd", "lowering", "fusion"))]
    assert run_on(Stops([fusion]), records) == (
        3,
        StopPoint("stage", "breakpoint 1: stage fusion", 1),
    )
    capture = Breakpoint(number=1, kind="stage", stage="capture")
    assert run_on(Stops([capture]), [frame(attempt=1), frame("1/0")]) == (
        1,
        StopPoint("stage", "breakpoint 1: stage capture", 1),
    )


def test_breaks_recompiles_and_misses() -> None:
    broken = GraphBreak(
        compile_id="0/0", attempt=0, gb="", type="", context="", explanation="", hints=(),
        location=at(9),
    )  # fmt: skip
    again = Recompile(compile_id="0/1", call=2, failed=(), location=at(1))
    missed = CacheLookup(cache="fx graph", verdict="miss")
    hit = CacheLookup(cache="fx graph", verdict="hit")
    records = [hit, broken, again, missed]
    for kind, index in (("break", 1), ("recompile", 2), ("miss", 3)):
        wanted = Breakpoint(number=1, kind=kind)  # type: ignore[arg-type]
        found = run_on(Stops([wanted]), records)
        assert found is not None
        assert (found[0], found[1].kind, found[1].breakpoint) == (index, "event", 1)
    elsewhere = Breakpoint(number=1, kind="break", file="model.py", line=10)
    assert run_on(Stops([elsewhere]), records) is None


def test_once_is_spent_even_where_all_are_set_anew() -> None:
    once = structs.replace(LINE, once=True)
    stops = Stops([once])
    records = [frame(), step(5), step(6), step(5)]
    assert run_on(stops, records[:2]) is not None
    stops.set_breakpoints([once, Breakpoint(number=2, kind="break")])
    assert run_on(stops, records[2:]) is None


def test_another_run_starts_from_nothing() -> None:
    stops = Stops([LINE])
    records = [frame(), step(5), graph("0/0/joint", "joint", node("exp", line=5))]
    first = [index for index, record in enumerate(records) if stops.after(record)]
    assert stops.after(Run(number=2, settings=Settings(file=FILE))) is None
    assert [index for index, record in enumerate(records) if stops.after(record)] == first == [1, 2]
