"""Where a driven compile stops: records in, reasons out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from compiler.control.commands import Breakpoint, Mode
from compiler.control.decisions import Decision
from compiler.control.stops import Stop, Stops, in_words
from compiler.trace.records import (
    Asked,
    CacheLookup,
    CallStart,
    Decided,
    Forbidden,
    FrameEnd,
    FrameStart,
    FusionPair,
    FusionRound,
    Graph,
    GraphBreak,
    Kernel,
    Location,
    Lowered,
    Node,
    PassChange,
    Progress,
    Recompile,
    Record,
    Run,
    SchedulerNode,
    Settings,
    StageStart,
    Step,
    Text,
)
from compiler.trace.records.graph import GraphKind

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
) -> Step:
    return Step(
        compile_id=compile_id, attempt=attempt, step=0, depth=depth, function="forward",
        location=at(line), ip=0, opcode="NOP", nodes=nodes,
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


def run_on(stops: Stops, records: Iterable[Record]) -> tuple[int, Stop] | None:
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
    change = PassChange(
        graph="0/0/joint", name="remove_noop", subsystem="joint", before="", after=""
    )
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


def test_a_decision_stops_before_its_answer_and_not_after_it() -> None:
    one = decision("exp", "sum")
    stops = Stops()
    stops.go("decision")
    assert stops.decision(one) == Stop("decision", "next decision: fuse")
    assert stops.after(answered(one)) is None
    other = answered(decision("sum", "div"))
    assert stops.after(other) == Stop("decision", "next decision: fuse"), "it was never asked"


def test_a_decision_that_is_answered_late_stops_once() -> None:
    """An engine may weigh other pairs before it knows how the first one ended."""
    one, two = decision("exp", "sum"), decision("sum", "div")
    stops = Stops()
    stops.go("decision")
    assert stops.decision(one)
    assert stops.decision(two)
    assert stops.after(answered(one)) is None
    assert stops.after(answered(two)) is None


def pair(fused: bool, rule: str = "", round: int = 1, within: str = "") -> FusionPair:
    return FusionPair(
        id="inductor/0/0/forward/fuse/exp+sum", graph="0/0/forward", round=round, phase="screen",
        first="op1", second="op2", fused=fused, rule=rule, within=within,
    )  # fmt: skip


def test_a_pair_of_inductors_is_a_decision_each_time_that_the_answer_changes() -> None:
    """Only the decisions that a person was shown have a record of their own."""
    stops = Stops([Breakpoint(number=1, kind="rejection")])
    records = [pair(False, "between"), pair(False, "between", 2), pair(True, "", 3)]
    assert [index for index, one in enumerate(records) if stops.after(one)] == [0]
    stops = Stops()
    stops.go("decision")
    assert [index for index, one in enumerate(records) if stops.after(one)] == [0, 2]
    assert not stops.after(pair(False, "members", within="other"))
    asked = Asked(
        id=records[0].id, graph="0/0/forward", kind="fuse", default="apart",
        choices=("fuse", "apart"), rule="between",
    )  # fmt: skip
    stops = Stops()
    stops.go("decision")
    assert stops.after(asked)
    assert not stops.after(records[0])


def rounds(*answers: FusionPair) -> list[Record]:
    """Each in a round of its own."""
    found: list[Record] = []
    for number, one in enumerate(answers, 1):
        over = FusionRound(graph="0/0/forward/lowered", round=number, nodes_before=2, nodes_after=2)
        found += [structs.replace(one, round=number, graph="0/0/forward/lowered"), over]
    return found


def whys(stops: Stops, records: Iterable[Record], mode: Mode = "continue") -> list[str]:
    """Every stop, going on in the same mode."""
    found = []
    stops.go(mode)
    for one in records:
        stop = stops.after(one)
        if stop is not None:
            found.append(stop.why)
            stops.go(mode)
    return found


def test_a_breakpoint_on_one_pair_stops_again_only_where_it_is_another_question() -> None:
    wanted = Breakpoint(number=1, kind="decision", id=pair(True).id)
    apart = rounds(pair(False, "domain"), pair(False, "domain"), pair(False, "outer-loop"))
    assert whys(Stops([wanted]), apart) == ["breakpoint 1: decision fuse exp + sum"]
    assert whys(Stops(), apart, "fusion") == ["next fusion decision: fuse"]
    other = rounds(pair(False, "between"), pair(False, "between"), pair(True), pair(False, "x"))
    assert whys(Stops([wanted]), other) == [
        "breakpoint 1: decision fuse exp + sum",
        "breakpoint 1: decision fuse exp + sum; weighed again in round 3: the engine now says fuse",
    ]
    lost = rounds(pair(True), pair(False, "cycle"))
    assert whys(Stops([wanted]), lost)[1:] == [
        "breakpoint 1: decision fuse exp + sum; "
        "weighed again in round 2: the engine now says apart, rule cycle"
    ]
    same = rounds(pair(True), pair(False, "already-fused"))
    assert len(whys(Stops([wanted]), same)) == 1, "they are one group: nothing is decided"


def test_a_choice_that_opens_is_another_question_and_a_rule_met_late_is_met() -> None:
    def asked(*forbidden: Forbidden) -> Asked:
        return Asked(
            id=pair(True).id, graph="0/0/forward", kind="fuse", default="apart", rule="domain",
            choices=("fuse", "apart"), forbidden=forbidden,
        )  # fmt: skip

    closed = Forbidden(choice="fuse", rule="domain", reason="")
    wanted = Breakpoint(number=1, kind="decision", id=pair(True).id)
    assert whys(Stops([wanted]), [asked(closed), asked(closed), asked(), asked()])[1:] == [
        "breakpoint 1: decision fuse exp + sum; weighed again in round 1: fuse can now be chosen"
    ]
    late = Breakpoint(number=1, kind="rejection", rule="outer-loop")
    pairs = rounds(pair(False, "domain"), pair(False, "outer-loop"), pair(False, "outer-loop"))
    assert whys(Stops([late]), pairs) == ["breakpoint 1: rejected fusion, rule outer-loop"]


LINE = Breakpoint(number=1, kind="line", file="model.py", line=5)


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
    assert [index for index, one in enumerate(records) if stops.after(one)] == [1, 3, 4, 6, 8, 10]


def test_an_operation_by_part_of_its_name_or_target() -> None:
    stops = Stops([Breakpoint(number=2, kind="op", op="softmax")])
    records: list[Record] = [
        step(5, nodes=("relu",)),
        step(5, nodes=("softmax",)),  # 1
        graph("0/0", "captured", node("relu"), node("softmax")),  # 2
        graph("0/0/joint", "joint", node("x", target="aten._softmax.default")),  # 3
        graph("0/0/forward", "forward", node("exp")),
    ]
    assert [index for index, one in enumerate(records) if stops.after(one)] == [1, 2, 3]


def test_an_operation_stops_at_each_decision_about_it() -> None:
    stops = Stops([Breakpoint(number=2, kind="op", op="exp")])
    stops.after(SchedulerNode(graph="0/0/forward", name="op1", kind="", origins=("exp",), label=""))
    assert stops.decision(decision("exp", "sum"))
    assert not stops.decision(decision("relu", "sum"))
    assert stops.decision(decision("op1", "op2")), "op1 was made from exp"


def test_stages() -> None:
    fusion = Breakpoint(number=1, kind="stage", stage="fusion")
    records = [frame(), *(StageStart(stage=one) for one in ("autograd", "lowering", "fusion"))]
    assert run_on(Stops([fusion]), records) == (3, Stop("stage", "breakpoint 1: stage fusion", 1))
    capture = Breakpoint(number=1, kind="stage", stage="capture")
    assert run_on(Stops([capture]), [frame(attempt=1), frame("1/0")]) == (
        1,
        Stop("stage", "breakpoint 1: stage capture", 1),
    )


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        (Breakpoint(number=1, kind="decision"), True),
        (Breakpoint(number=1, kind="decision", decision="fuse"), True),
        (Breakpoint(number=1, kind="decision", decision="save"), False),
        (Breakpoint(number=1, kind="decision", rule="domain"), True),
        (Breakpoint(number=1, kind="decision", rule="cycle"), False),
        (Breakpoint(number=1, kind="decision", number_name="saved", at_least=100), True),
        (Breakpoint(number=1, kind="decision", number_name="saved", at_least=101), False),
        (Breakpoint(number=1, kind="decision", number_name="saved", at_most=99), False),
        (Breakpoint(number=1, kind="decision", number_name="save", at_most=100), True),
        (Breakpoint(number=1, kind="decision", number_name="score", at_least=0), False),
        (Breakpoint(number=1, kind="decision", at_least=100), True),
        (Breakpoint(number=1, kind="decision", stage="memory"), False),
        (Breakpoint(number=1, kind="rejection"), True),
        (Breakpoint(number=1, kind="rejection", decision="inline"), False),
        (Breakpoint(number=1, kind="break"), False),
    ],
    ids=lambda value: in_words(value) if isinstance(value, Breakpoint) else "",
)
def test_decisions_with_all_that_is_asked_for(wanted: Breakpoint, met: bool) -> None:
    stops = Stops([wanted])
    stops.after(StageStart(stage="fusion", graph="0/0/forward"))
    assert bool(stops.decision(decision("exp", "sum", default="apart", saved=100.0))) == met


def test_a_breakpoint_on_one_decision_stops_at_no_other() -> None:
    one, other = decision("exp", "sum"), decision("exp", "sum_1")
    stops = Stops([Breakpoint(number=1, kind="decision", id=one.id)])
    assert stops.decision(other) is None
    stop = stops.decision(one)
    assert stop == Stop("decision", "breakpoint 1: decision fuse exp + sum", 1)
    stops = Stops()
    stops.go("cursor", Breakpoint(number=0, kind="decision", id=one.id))
    assert run_on(stops, [answered(other), answered(one)]) == (
        1, Stop("decision", "run to cursor"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "modes"),
    [
        (decision("a", "b"), {"decision", "fusion", "any-decision"}),
        (decision("a", "b", default="apart"), {"decision", "fusion", "any-decision"}),
        (decision("a", "b", default="apart", rule="no-shared-data"), {"fusion", "any-decision"}),
        (decision("a", kind="save", default="save"), {"decision", "any-decision"}),
        (decision("a", kind="inline", default="inline"), {"decision", "any-decision"}),
        (decision("a", kind="reuse", default="reuse"), {"decision", "any-decision"}),
        (decision("a", kind="lowering", default="loops"), {"any-decision"}),
        (decision("a", kind="lowering", default="aten"), {"decision", "any-decision"}),
        (decision("a", kind="unroll", default="4"), {"any-decision"}),
        (decision("a", kind="library", default="onednn"), {"any-decision"}),
    ],
)
def test_the_next_decision_is_one_that_matters(one: Decision, modes: set[Mode]) -> None:
    for mode in ("decision", "fusion", "any-decision"):
        stops = Stops()
        stops.go(mode)
        assert (stops.decision(one) is not None) == (mode in modes), mode


def test_the_first_rejection_is_one_that_comes_together_later() -> None:
    """What stops it is what the engine would have done with the pair itself."""
    refused = decision("exp", "div", default="apart", rule="cycle")
    joined = answered(decision("exp", "div", default="fuse", rule="joined"))
    stops = Stops([Breakpoint(number=1, kind="rejection", once=True)])
    assert run_on(stops, [answered(decision("exp", "sum"))]) is None
    assert stops.decision(refused) == Stop("decision", "breakpoint 1: first rejected fusion", 1)
    assert run_on(stops, [answered(refused), joined]) is None


def test_an_accepted_fusion_is_no_rejection() -> None:
    stops = Stops([Breakpoint(number=1, kind="rejection")])
    assert not stops.decision(decision("exp", "sum"))
    assert not stops.decision(decision("exp", kind="save", default="apart"))


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


def test_the_cursor_is_a_breakpoint_of_one_go() -> None:
    stops = Stops()
    stops.go("cursor", LINE)
    assert run_on(stops, [frame(), step(4), step(5)]) == (2, Stop("breakpoint", "run to cursor"))
    stops.go("continue")
    assert run_on(stops, [step(6), step(5)]) is None


def test_a_pause_stops_at_the_next_place() -> None:
    stops = Stops()
    stops.pause()
    assert run_on(stops, [Text(hash="", body=""), step(5), step(6)]) == (1, Stop("step", "paused"))
    assert run_on(stops, [step(7)]) is None
    stops.pause()
    assert stops.decision(decision("exp", "sum")) == Stop("decision", "paused")


def test_another_run_starts_from_nothing() -> None:
    stops = Stops([LINE])
    records = [frame(), step(5), graph("0/0/joint", "joint", node("exp", line=5))]
    first = [index for index, one in enumerate(records) if stops.after(one)]
    assert stops.after(Run(number=2, settings=Settings(file=FILE))) is None
    assert [index for index, one in enumerate(records) if stops.after(one)] == first == [1, 2]


names = st.sampled_from(["exp", "sum", "div", "softmax"])
lines = st.integers(1, 4)
ids = st.sampled_from(["0/0", "1/0"])
records_of_a_compile = st.one_of(
    st.builds(frame, ids, st.integers(0, 2)),
    st.builds(end, ids),
    st.builds(step, lines, st.integers(0, 2), st.integers(0, 2), ids, st.tuples(names)),
    st.builds(
        lambda kind, name, line: graph(f"0/0/{kind}", kind, node(name, line=line)),
        st.sampled_from(["joint", "forward"]),
        names,
        lines,
    ),
    st.builds(lambda stage: StageStart(stage=stage), st.sampled_from(["autograd", "fusion"])),
    st.builds(lambda call: CallStart(call=call), st.just(1)),
)
decisions = st.builds(
    lambda one, other, default, saved: decision(one, other, default=default, saved=saved),
    names,
    names,
    st.sampled_from(["fuse", "apart"]),
    st.floats(0, 10),
)
breakpoints = st.lists(
    st.one_of(
        st.builds(lambda line: structs.replace(LINE, line=line), lines),
        st.builds(lambda op: Breakpoint(number=2, kind="op", op=op), names),
        st.builds(
            lambda least: Breakpoint(
                number=3, kind="decision", number_name="saved", at_least=least
            ),
            st.floats(0, 10),
        ),
        st.just(Breakpoint(number=4, kind="rejection", once=True)),
        st.just(Breakpoint(number=5, kind="stage", stage="fusion")),
    ),
    max_size=3,
)
modes = st.sampled_from(
    ["instruction", "over", "out", "line", "frame", "graph", "decision", "stage", "continue"]
)


@given(
    st.lists(st.one_of(records_of_a_compile, decisions), max_size=40),
    breakpoints,
    st.lists(modes, min_size=1, max_size=6),
    st.booleans(),
)
def test_a_replay_stops_where_the_compile_did(
    sequence: list[Record | Decision],
    wanted: list[Breakpoint],
    chosen: list[Mode],
    with_asked: bool,
) -> None:
    """The compile is asked before a decision, and its record comes after; the replay reads it."""

    def drive(replayed: bool) -> list[tuple[int, Stop, str]]:
        stops = Stops(wanted)
        stops.go(chosen[0])
        found: list[tuple[int, Stop, str]] = []
        for index, one in enumerate(sequence):
            told: list[Stop | None] = []
            if not isinstance(one, Decision):
                told.append(stops.after(one))
            elif not replayed:
                told += [stops.decision(one), stops.after(answered(one))]
            else:
                if with_asked:
                    asked = Asked(
                        id=one.id, graph=one.graph, kind=one.kind, default=one.default,
                        choices=one.choices, rule=one.rule, numbers=dict(one.numbers),
                    )  # fmt: skip
                    told.append(stops.after(asked))
                told.append(stops.after(answered(one)))
            for stop in filter(None, told):
                found.append((index, stop, stops.place.compile_id))
                stops.go(chosen[len(found) % len(chosen)])
        return found

    assert drive(replayed=False) == drive(replayed=True)


def test_a_pair_that_was_asked_about_tells_its_answer_and_is_no_decision_of_its_own() -> None:
    stops = Stops()
    stops.go("decision")
    asked = Asked(
        id=pair(True).id,
        graph="0/0/forward",
        kind="fuse",
        default="fuse",
        choices=("fuse", "apart"),
    )
    assert stops.after(asked) is not None
    assert stops.after(pair(False, "veto")) is None
    assert stops.after(pair(False, "veto", round=2)) is None
    assert stops.after(pair(False, "between", round=3)) is None, "they are apart as before"
