"""Records of a compile, and where stepping through them stops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from tcw.compiler.protocol.commands import Breakpoint, Mode
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.protocol.stops import StopPoint, Stops
from tcw.compiler.trace.records import (
    Decided,
    FrameEnd,
    FrameStart,
    FusionRound,
    Graph,
    Location,
    Node,
    Record,
    Step,
)
from tcw.compiler.trace.records.graph import GraphKind
from tests.decided import pair_test

FILE = "/home/me/model.py"


def at(line: int, file: str = FILE) -> Location:
    return Location(file=file, line=line)


def frame(compile_id: str = "0/0", attempt: int = 0) -> FrameStart:
    return FrameStart(
        compile_id=compile_id, attempt=attempt, function="forward", location=at(1), call=1
    )


def end(compile_id: str = "0/0") -> FrameEnd:
    return FrameEnd(compile_id=compile_id, status="compiled", seconds=0.1)


def step(
    line: int,
    depth: int = 0,
    attempt: int = 0,
    compile_id: str = "0/0",
    nodes: tuple[str, ...] = (),
    frame: int = -1,
) -> Step:
    return Step(
        compile_id=compile_id, attempt=attempt, step=0, depth=depth, function="forward",
        location=at(line), ip=0, opcode="NOP", nodes=nodes, frame=frame,
    )  # fmt: skip


def graph(id: str, kind: GraphKind, *nodes: Node) -> Graph:
    return Graph(id=id, kind=kind, compile_id="0/0", nodes=nodes)


def node(name: str, target: str = "aten.exp.default", line: int | None = None) -> Node:
    location = at(line) if line is not None else None
    return Node(name=name, op="call_function", target=target, location=location)


def decision(
    *names: str, kind: str = "fuse", default: str = "fuse", rule: str = "domain", **numbers: float
) -> Decision:
    return Decision(
        graph="0/0/forward", kind=kind, names=names, default=default, choices=("fuse", "apart"),
        rule=rule, numbers=numbers,
    )  # fmt: skip


def answered(one: Decision) -> Decided:
    return Decided(
        id=one.id, graph=one.graph, kind=one.kind, default=one.default, choice=one.default,
        choices=one.choices, rule=one.rule, numbers=dict(one.numbers),
    )  # fmt: skip


def pair(
    fused: bool, rule: str = "", round: int = 1, within: str = "", overridden: bool = False
) -> Decided:
    return pair_test(
        id="inductor/0/0/forward/fuse/exp+sum", graph="0/0/forward/lowered", round=round,
        phase="screen", overridden=overridden,
        first="op1", second="op2", fused=fused, rule=rule, within=within,
    )  # fmt: skip


def run_on(stops: Stops, records: Iterable[Record]) -> tuple[int, StopPoint] | None:
    """Index of the first of these records at which it stops, and why."""
    for index, record in enumerate(records):
        stop = stops.after(record)
        if stop is not None:
            return index, stop
    return None


def standing(*before: Record) -> Stops:
    """One that has seen these, and stands at the last of them."""
    stops = Stops()
    assert run_on(stops, before) is None
    return stops


def stepped(stops: Stops, mode: Mode, records: Sequence[Record]) -> int | None:
    stops.go(mode)
    found = run_on(stops, records)
    return None if found is None else found[0]


def rounds(*answers: Decided) -> list[Record]:
    """Each in a round of its own."""
    found: list[Record] = []
    for number, answer in enumerate(answers, 1):
        over = FusionRound(graph="0/0/forward/lowered", round=number)
        found += [structs.replace(answer, pair=structs.replace(answer.pair, round=number)), over]
    return found


def whys(stops: Stops, records: Iterable[Record], mode: Mode = "continue") -> list[str]:
    """Every stop, going on in the same mode."""
    found = []
    stops.go(mode)
    for record in records:
        stop = stops.after(record)
        if stop is not None:
            found.append(stop.why)
            stops.go(mode)
    return found


LINE = Breakpoint(number=1, kind="line", file="model.py", line=5)
