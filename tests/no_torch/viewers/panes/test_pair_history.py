"""A pair's rounds are told in one place, which the quiz and the loops agree with."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, Decided, FusionRound, SchedulerNode
from tcw.viewers.panes import fusion, pair_loops, score
from tcw.viewers.panes.view import View
from tcw.viewers.recording import Recording
from tcw.viewers.summary.fusion import fusion_summary, history
from tcw.viewers.teaching.predict import Guess, Quiz, Truth, question_of
from tests.decided import asked, pair_test
from tests.no_torch.viewers.panes.conftest import view_of

GRAPH = "0/0/forward/lowered"
ID = "inductor/0/0/forward/fuse/exp+sum"


def in_round(round_: int, first: str, second: str, fused: bool, rule: str = "") -> Decided:
    return pair_test(
        id=ID, graph=GRAPH, first=first, second=second, round=round_, fused=fused, rule=rule,
        phase="commit",
    )  # fmt: skip


def rounds() -> list[AnyRecord]:
    """Apart for a cycle in rounds 1 and 2; fused in round 3, when mean is in B."""
    nodes = [
        SchedulerNode(graph=GRAPH, name=f"op{n}", kind="pointwise", origins=(label,), label=label)
        for n, label in enumerate(("exp", "sum", "mean"))
    ]
    return [
        *nodes,
        in_round(1, "op0", "op1", False, "cycle"),
        FusionRound(graph=GRAPH, round=1),
        in_round(2, "op0", "op1", False, "cycle"),
        FusionRound(graph=GRAPH, round=2, fused=(("op1", "op2", "op1_op2"),)),
        in_round(3, "op0", "op1_op2", True),
        FusionRound(graph=GRAPH, round=3, fused=(("op0", "op1_op2", "op0_op1_op2"),)),
    ]


def question() -> Decided:
    return asked(
        id=ID, graph="0/0/forward", kind="fuse", default="apart", choices=("apart",),
        rule="cycle", first=("op0",), second=("op1",), if_fused="stale",
    )  # fmt: skip


TOLD = "rounds 1–2 apart: in a cycle with other nodes · round 3 fused, since mean joined"


def view(*more: AnyRecord) -> View:
    found = view_of([*rounds(), *more])
    found.pair = ID
    return found


def test_a_pair_has_one_history() -> None:
    recording = Recording(rounds())
    (pair,) = fusion_summary(recording).graphs[0].pairs
    assert " · ".join(history(recording, pair)) == TOLD
    once = Recording(rounds()[:5])
    assert history(once, fusion_summary(once).graphs[0].pairs[0]) == ()


def test_a_refused_choice_is_part_of_it() -> None:
    refused = structs.replace(rounds()[3], wanted="fuse", refused="cycle")
    records = [refused if one == rounds()[3] else one for one in rounds()]
    recording = Recording(records)
    (pair,) = fusion_summary(recording).graphs[0].pairs
    told = structs.replace(refused, pair=None, id=ID)
    assert told.refused == "cycle"
    with_choice = Recording([*records, told])
    (pair,) = fusion_summary(with_choice).graphs[0].pairs
    assert history(with_choice, pair)[-1].startswith("your fuse was refused: ")


def test_the_bar_and_the_score_tell_it() -> None:
    shown = "\n".join(row.text for row in fusion.verdict(view(), 160))
    assert TOLD in shown
    quiz = Quiz()
    posed = question_of(structs.replace(rounds()[3]))  # type: ignore[arg-type]
    quiz.guesses.append(Guess(posed, "fuse", Truth("apart", "cycle")))
    at = view()
    at.quiz = quiz
    for rows in (score.bar(at, quiz, 200), score.content(at, 200).rows):
        assert TOLD in "\n".join(row.text for row in rows)


def test_what_it_would_have_been_is_not_shown_beside_what_it_is() -> None:
    """A person was asked in round 1; in round 3 it was fused after all."""
    assert pair_loops.if_fused(view(question()), 80).name == "became"
