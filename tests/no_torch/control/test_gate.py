"""The decision gate: defaults, overrides, refusals, vetoes, and what was never met."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.control.gate import Gate
from tcw.compiler.protocol.decision import (
    APART,
    ENGINES,
    FUSE,
    INDUCTOR,
    Decision,
    Ruling,
    decision_id,
    engine_of,
    split_id,
)
from tcw.compiler.protocol.override_file import OverrideError, read_overrides

GRAPH = "0/0/forward"
EXP_SUM = "tcw/0/0/forward/fuse/exp+sum_1"


def fusion(first: str, second: str, default: str = FUSE, cycle: bool = False) -> Decision:
    return Decision(
        graph=GRAPH,
        kind="fuse",
        names=(first, second),
        default=default,
        choices=(FUSE, APART),
        rule="saves-bytes",
        reason=f"{second} reads {first}",
        numbers={"saved_bytes": 4096},
        forbidden={FUSE: ("cycle", f"{second} reaches {first}")} if cycle else {},
    )


def test_without_an_override_the_default_is_taken_and_kept() -> None:
    seen: list[Ruling] = []
    gate = Gate(watch=seen.append)
    decision = fusion("exp", "sum_1")
    assert decision.id == EXP_SUM
    assert gate.decide(decision) == FUSE
    assert gate.decided == seen == [Ruling(decision, FUSE)]
    assert not gate.refused()
    assert not list(gate.unknown())


def test_an_override_is_followed() -> None:
    gate = Gate({EXP_SUM: APART})
    assert not gate.fuse(fusion("exp", "sum_1"), ["exp"], ["sum_1"])
    assert gate.decided[0].overridden
    assert not list(gate.unknown())


def test_an_override_that_asks_for_the_default_changes_nothing() -> None:
    gate = Gate({EXP_SUM: FUSE})
    assert gate.decide(fusion("exp", "sum_1")) == FUSE
    assert not gate.decided[0].overridden


def test_an_illegal_force_is_refused_with_its_rule() -> None:
    gate = Gate({EXP_SUM: FUSE})
    assert gate.decide(fusion("exp", "sum_1", default=APART, cycle=True)) == APART
    (refused,) = gate.refused()
    assert refused.refused == "rule cycle: sum_1 reaches exp"
    assert refused.wanted == FUSE
    assert not list(gate.unknown())


def test_a_choice_that_there_is_not_is_refused() -> None:
    gate = Gate({EXP_SUM: "never"})
    assert gate.decide(fusion("exp", "sum_1")) == FUSE
    assert gate.refused()[0].refused == "'never' is not a choice: use fuse or apart"


def test_a_refusal_is_told_once_however_often_the_pair_comes_back() -> None:
    gate = Gate({EXP_SUM: "never"})
    for _ in range(3):
        gate.decide(fusion("exp", "sum_1"))
    assert len(gate.refused()) == 1


def test_a_veto_holds_for_groups_that_took_the_nodes_in() -> None:
    gate = Gate({EXP_SUM: APART})
    assert not gate.fuse(fusion("amax", "div"), ["amax", "exp"], ["div", "sum_1"])
    assert not gate.fuse(fusion("div", "amax"), ["div", "sum_1"], ["exp"])
    assert gate.fuse(fusion("amax", "div"), ["amax", "exp"], ["div"])
    assert gate.veto(GRAPH, ["exp"], ["sum_1"]) == EXP_SUM
    assert gate.veto("0/0/backward", ["exp"], ["sum_1"]) == ""
    assert not list(gate.unknown())


def test_a_veto_wins_against_a_force_of_groups_that_hold_its_nodes() -> None:
    forced = decision_id(GRAPH, "fuse", "amax", "div")
    gate = Gate({EXP_SUM: APART, forced: FUSE})
    assert not gate.fuse(fusion("amax", "div"), ["amax", "exp"], ["div", "sum_1"])
    assert gate.refused()[0].refused == f"{EXP_SUM} keeps two of their nodes apart"


def test_what_met_no_decision_is_told_with_what_comes_closest() -> None:
    gate = Gate({"tcw/0/0/forward/fuse/exp+sum_2": APART, "tcw/9/9/inference/reuse/buf0": "own"})
    gate.decide(fusion("exp", "sum_1"))
    assert list(gate.unknown()) == [
        ("tcw/0/0/forward/fuse/exp+sum_2", EXP_SUM),
        ("tcw/9/9/inference/reuse/buf0", ""),
    ]


def test_choices_of_one_kind_can_be_asked_for_ahead() -> None:
    gate = Gate({"tcw/0/0/joint/save/relu": "recompute", EXP_SUM: APART})
    assert gate.chosen("0/0/joint", "save") == {"relu": "recompute"}
    assert gate.chosen(GRAPH, "fuse") == {"exp+sum_1": APART}


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@given(st.lists(NAMES, min_size=1, max_size=3), NAMES, st.sampled_from(["0/0", "1/2", "3/0_1"]))
def test_an_id_can_be_taken_apart(names: list[str], kind: str, compile_id: str) -> None:
    graph = f"{compile_id}/forward"
    for engine in ENGINES:
        id = decision_id(graph, kind, *names, engine=engine)
        assert engine_of(id) == engine
        assert split_id(id) == (graph, kind, tuple(names))


@given(st.sets(NAMES, max_size=6), st.sets(NAMES, max_size=6), NAMES, NAMES)
def test_vetoed_nodes_never_share_a_nest(
    first: set[str], second: set[str], left: str, right: str
) -> None:
    gate = Gate({decision_id(GRAPH, "fuse", left, right): APART})
    pair = fusion(next(iter(sorted(first)), "a"), next(iter(sorted(second)), "b"))
    fused = gate.fuse(pair, first, second)
    split = (left in first and right in second) or (right in first and left in second)
    if split:
        assert not fused


def write(folder: Path, text: str) -> Path:
    file = folder / "overrides.toml"
    file.write_text(text)
    return file


def test_a_file_of_overrides(tmp_path: Path) -> None:
    file = write(tmp_path, f'# why\n"{EXP_SUM}" = "apart"\n')
    assert read_overrides(file) == {EXP_SUM: APART}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tcw/0/0 = apart", "both in quotes"),
        (f'"{EXP_SUM}" = true', 'the value must be a choice in quotes, such as "apart"'),
        ('"eager/0/0/forward/fuse/a+b" = "apart"', "ids of decisions begin with tcw/ or inductor/"),
        ('[tcw]\nx = "apart"', "the value must be a choice in quotes"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(OverrideError, match=r"overrides\.toml") as caught:
        read_overrides(write(tmp_path, text))
    assert says in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OverrideError, match="No such file"):
        read_overrides(tmp_path / "none.toml")


def test_what_came_together_through_others_is_said_last() -> None:
    gate = Gate()
    decision = Decision(
        graph="0/0/forward",
        kind=FUSE,
        names=("add", "mul"),
        default=APART,
        choices=(FUSE, APART),
        rule="cycle",
        forbidden={FUSE: ("cycle", "")},
    )
    assert not gate.fuse(decision, ["add"], ["mul"])
    gate.joined(decision)
    assert [one.choice for one in gate.decided] == [APART, FUSE]


def test_the_same_names_in_another_engine_are_another_decision() -> None:
    other = decision_id(GRAPH, FUSE, "exp", "sum_1", engine=INDUCTOR)
    gate = Gate({other: APART})
    assert gate.fuse(fusion("exp", "sum_1"), ["exp"], ["sum_1"])
    assert not gate.veto(GRAPH, ["exp"], ["sum_1"])
    assert gate.chosen(GRAPH, FUSE) == {}
    assert gate.chosen(GRAPH, FUSE, INDUCTOR) == {"exp+sum_1": APART}
    assert gate.text(GRAPH) == ""
    assert [id for id, _ in gate.unknown()] == [other]


def test_an_answer_that_is_not_kept_says_how_the_decision_would_go() -> None:
    seen: list[Ruling] = []
    gate = Gate({EXP_SUM: APART}, seen.append)
    answer = gate.answer(fusion("exp", "sum_1"))
    assert (answer.choice, answer.overridden) == (APART, True)
    assert gate.decided == seen == []
    assert gate.keep(answer) == APART
    assert seen == [answer]


def test_a_refusal_that_was_followed_later_is_none() -> None:
    gate = Gate({EXP_SUM: FUSE})
    gate.decide(fusion("exp", "sum_1", default=APART, cycle=True))
    assert gate.refused()
    gate.decide(fusion("exp", "sum_1", default=APART))
    assert not gate.refused()


def test_a_decision_that_is_known_but_not_kept_helps_with_a_misspelt_override() -> None:
    gate = Gate({"inductor/0/0/forward/fuse/amax+exq": APART})
    gate.known("inductor/0/0/forward/fuse/amax+exp")
    assert [near for _, near in gate.unknown()] == ["inductor/0/0/forward/fuse/amax+exp"]


def test_a_person_is_asked_unless_the_stage_asked_the_same_before() -> None:
    asked: list[str] = []

    def ask(decision: Decision) -> str:
        asked.append(decision.id)
        return APART

    gate = Gate(ask=ask)
    assert gate.answer(fusion("exp", "sum_1"), ask=False).choice == FUSE
    assert gate.answer(fusion("exp", "sum_1")).choice == APART
    assert gate.answer(fusion("exp", "sum_1")).choice == APART
    assert asked == [EXP_SUM]


def test_a_person_is_asked_and_holds_from_then_on() -> None:
    asked: list[str] = []

    def ask(decision: Decision) -> str:
        asked.append(decision.id)
        return APART

    gate = Gate(ask=ask)
    assert gate.asks
    assert not gate.silent
    assert not gate.fuse(fusion("exp", "sum_1"), ["exp"], ["sum_1"])
    assert gate.overrides == {EXP_SUM: APART}
    assert not gate.fuse(fusion("mul", "sum_2"), ["mul", "exp"], ["sum_2", "sum_1"])
    assert asked == [EXP_SUM]


def test_an_illegal_answer_changes_nothing() -> None:
    gate = Gate(ask=lambda decision: FUSE)
    assert not gate.fuse(fusion("exp", "sum_1", APART, cycle=True), ["exp"], ["sum_1"])
    assert not gate.overrides


def test_a_choice_that_was_not_taken_is_not_offered_again() -> None:
    """A file would have taken it the first time: an answer must mean the same as a file."""
    asked: list[str] = []

    def ask(decision: Decision) -> str:
        asked.append(decision.default)
        return ""

    gate = Gate(ask=ask)
    illegal, unprofitable = fusion("exp", "sum_1", APART, cycle=True), fusion("exp", "sum_1", APART)
    gate.decide(illegal)
    gate.decide(unprofitable)
    gate.decide(unprofitable)
    gate.decide(fusion("exp", "sum_1"))
    assert asked == [APART, APART, FUSE]


def test_a_gate_that_nobody_listens_to_is_silent() -> None:
    assert Gate().silent
    assert not Gate(watch=lambda decided: None).silent
    assert not Gate({EXP_SUM: APART}).silent
