"""Where a driven compile stops for a decision."""

from __future__ import annotations

import pytest

from tcw.compiler.protocol.commands import Breakpoint, Mode
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.protocol.stops import StopPoint, Stops, in_words
from tcw.compiler.trace.records import (
    Decided,
    Forbidden,
    StageStart,
)
from tests.decided import asked as asked_decision
from tests.no_torch.protocol.stopping import (
    answered,
    decision,
    pair,
    rounds,
    run_on,
    whys,
)


def test_a_decision_stops_before_its_answer_and_not_after_it() -> None:
    one = decision("exp", "sum")
    stops = Stops()
    stops.go("decision")
    assert stops.decision(one) == StopPoint("decision", "next decision: fuse")
    assert stops.after(answered(one)) is None
    other = answered(decision("sum", "div"))
    assert stops.after(other) == StopPoint("decision", "next decision: fuse"), "it was never asked"


def test_a_decision_that_is_answered_late_stops_once() -> None:
    """An engine may weigh other pairs before it knows how the first one ended."""
    one, two = decision("exp", "sum"), decision("sum", "div")
    stops = Stops()
    stops.go("decision")
    assert stops.decision(one)
    assert stops.decision(two)
    assert stops.after(answered(one)) is None
    assert stops.after(answered(two)) is None


def test_a_pair_of_inductors_is_a_decision_each_time_that_the_answer_changes() -> None:
    """Only the decisions that a person was shown have a record of their own."""
    stops = Stops([Breakpoint(number=1, kind="rejection")])
    records = [pair(False, "between"), pair(False, "between", 2), pair(True, "", 3)]
    assert [index for index, record in enumerate(records) if stops.after(record)] == [0]
    stops = Stops()
    stops.go("decision")
    assert [index for index, record in enumerate(records) if stops.after(record)] == [0, 2]
    assert not stops.after(pair(False, "members", within="other"))
    asked = asked_decision(
        id=records[0].id, graph="0/0/forward", kind="fuse", default="apart",
        choices=("fuse", "apart"), rule="between",
    )  # fmt: skip
    stops = Stops()
    stops.go("decision")
    assert stops.after(asked)
    assert not stops.after(records[0])


def test_a_pair_that_was_asked_about_tells_its_answer_and_is_no_decision_of_its_own() -> None:
    stops = Stops()
    stops.go("decision")
    asked = asked_decision(
        id=pair(True).id,
        graph="0/0/forward",
        kind="fuse",
        default="fuse",
        choices=("fuse", "apart"),
    )
    assert stops.after(asked) is not None
    assert stops.after(pair(False, overridden=True)) is None
    assert stops.after(pair(False, round=2, overridden=True)) is None
    assert stops.after(pair(False, "between", round=3)) is not None


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
    def asked(*forbidden: Forbidden) -> Decided:
        return asked_decision(
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


def test_what_an_override_keeps_apart_is_no_rejection_of_the_engines() -> None:
    wanted = Breakpoint(number=1, kind="rejection")
    assert whys(Stops([wanted]), rounds(pair(False, overridden=True))) == []
    assert len(whys(Stops([wanted]), rounds(pair(True, "between", overridden=True)))) == 1


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
    assert stop == StopPoint("decision", "breakpoint 1: decision fuse exp + sum", 1)
    stops = Stops()
    stops.go("cursor", Breakpoint(number=0, kind="decision", id=one.id))
    assert run_on(stops, [answered(other), answered(one)]) == (
        1, StopPoint("decision", "run to cursor"),
    )  # fmt: skip


def test_the_first_rejection_is_one_that_comes_together_later() -> None:
    """What stops it is what the engine would have done with the pair itself."""
    refused = decision("exp", "div", default="apart", rule="cycle")
    joined = answered(decision("exp", "div", default="fuse", rule="joined"))
    stops = Stops([Breakpoint(number=1, kind="rejection", once=True)])
    assert run_on(stops, [answered(decision("exp", "sum"))]) is None
    assert stops.decision(refused) == StopPoint(
        "decision", "breakpoint 1: first rejected fusion", 1
    )
    assert run_on(stops, [answered(refused), joined]) is None


def test_an_accepted_fusion_is_no_rejection() -> None:
    stops = Stops([Breakpoint(number=1, kind="rejection")])
    assert not stops.decision(decision("exp", "sum"))
    assert not stops.decision(decision("exp", kind="save", default="apart"))
