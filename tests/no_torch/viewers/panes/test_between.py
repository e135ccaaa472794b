"""A rejection names what stands between the two as the panes name it, with its line."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tcw.viewers.panes import decision_bar, fusion, score
from tcw.viewers.panes.nests import nests
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import View
from tcw.viewers.teaching.predict import Question, Quiz, truth_of_asked
from tests.decided import asked, pair_test
from tests.no_torch.asking import GRAPH, ID, SIDES, stopped
from tests.no_torch.viewers.panes.conftest import view_of

BETWEEN = ("op9", "op12")
RULE = {"default": "apart", "rule": "between", "reason": "nodes between a and b: amax_default, exp"}


def line(rows: Iterable[Row]) -> str:
    words = (row.text.strip() for row in rows)
    return next(word for word in words if word.startswith("between"))


@pytest.fixture(scope="module")
def waits() -> View:
    """The compile waits at a pair that two nodes keep apart."""
    return view_of(stopped(between=BETWEEN, **RULE))


@pytest.fixture(scope="module")
def names(waits: View) -> str:
    """Each node as its pane calls it, and the line in the gutter of its loops."""
    found = []
    for name in BETWEEN:
        (node,) = fusion.nodes_of(waits, GRAPH, name)
        gutter = nests(waits, [node], set())[-1].gutter[0][0].strip(" ≈")
        found.append(f"{fusion.label_of(waits, GRAPH, name)} :{gutter}")
    return ", ".join(found)


def test_the_bar_of_a_decision(waits: View, names: str) -> None:
    assert line(decision_bar.rows(waits, 120)) == f"between  {names}"


def test_the_bar_of_a_pair_that_was_kept_apart(names: str) -> None:
    test = pair_test(
        id=ID, graph=GRAPH, fused=False, rule="between", first="_".join(SIDES[0]),
        second="_".join(SIDES[1]), between=BETWEEN,
    )  # fmt: skip
    view = view_of([*stopped()[:-2], test])
    view.pair = ID
    assert line(fusion.verdict(view, 120)) == f"between  {names}"


def test_the_quiz_and_its_score(waits: View, names: str) -> None:
    quiz = waits.quiz = Quiz()
    quiz.ask(Question(ID, "0/0/forward", "_".join(SIDES[0]), "_".join(SIDES[1])))
    truth = truth_of_asked(asked(id=ID, graph=GRAPH, kind="fuse", between=BETWEEN, **RULE))
    quiz.answer("fuse", truth)
    assert line(score.bar(waits, quiz, 120)) == f"between  {names}"
    assert names in line(score.content(waits, 120).rows)
    waits.quiz = None


def test_more_than_four_are_cut() -> None:
    between = ("op9", "op10", "op11", "op12", "op13")
    assert line(decision_bar.rows(view_of(stopped(between=between, **RULE)), 120)).endswith(", …")
