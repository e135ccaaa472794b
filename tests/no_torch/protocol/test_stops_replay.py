"""A replay stops where the compile did, whatever it is made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tcw.compiler.protocol.commands import Breakpoint, Mode
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.protocol.stops import StopPoint, Stops
from tcw.compiler.trace.records import (
    CallStart,
    Record,
    StageStart,
)
from tests.decided import asked as asked_decision
from tests.no_torch.protocol.stopping import (
    LINE,
    answered,
    decision,
    end,
    frame,
    graph,
    node,
    step,
)

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

    def drive(replayed: bool) -> list[tuple[int, StopPoint, str]]:
        stops = Stops(wanted)
        stops.go(chosen[0])
        found: list[tuple[int, StopPoint, str]] = []
        for index, one in enumerate(sequence):
            told: list[StopPoint | None] = []
            if not isinstance(one, Decision):
                told.append(stops.after(one))
            elif not replayed:
                told += [stops.decision(one), stops.after(answered(one))]
            else:
                if with_asked:
                    asked = asked_decision(
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
