"""What the page shows for any set of open folds is what the pane shows for it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tcw.viewers.html.folds import Conditions, Folded, with_folds
from tcw.viewers.html.replay import copy_of
from tcw.viewers.html.tour import CELLS, Tour
from tcw.viewers.panes.arrangement import ARRANGEMENTS
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.targets import Fold
from tcw.viewers.reader import whole
from tcw.viewers.recording import Recording
from tests.block_trace import block_trace
from tests.no_torch.profiles import block_profile


def seen(found: Folded, conditions: Conditions, opened: frozenset[str]) -> list[Row]:
    """The rows that the page shows where these folds are open."""
    folds, numbers = list(conditions.folds.values()), list(conditions.numbers.values())

    def holds(when: int) -> bool:
        if not when:
            return True
        fold, wanted, also = numbers[when - 1]
        return (folds[fold] in opened) == bool(wanted) and holds(also)

    return [row for row, when in zip(found.rows, found.when, strict=True) if holds(when)]


class Tree:
    """A pane of nested folds; a closed one may show some of what is in it, and a row for the
    rest."""

    def __init__(self, random: random.Random, depth: int = 0, name: str = "") -> None:
        self.name = name
        self.leaves = random.randrange(3) if name else 0
        self.few = random.randrange(self.leaves + 1)
        count = random.randrange(4) if depth < 3 else 0
        self.inside = [Tree(random, depth + 1, f"{name}.{number}") for number in range(count)]

    def rows(self, opened: frozenset[str]) -> list[Row]:
        found = []
        if self.name:
            mark = "▾" if self.name in opened else "▸"
            found.append(Row(body=((mark + self.name, "text"),), opens=Fold(self.name)))
            shown = self.leaves if self.name in opened else self.few
            found += [Row(body=((f"{self.name} {at}", "text"),)) for at in range(shown)]
            if self.name not in opened:
                rest = Row(body=(("more", "text"),), key=self.name, opens=Fold(self.name))
                return [*found, rest] if self.few < self.leaves else found
        return found + [row for one in self.inside for row in one.rows(opened)]

    def folds(self) -> list[str]:
        return [
            *([self.name] if self.name else []),
            *(k for one in self.inside for k in one.folds()),
        ]


@pytest.mark.parametrize("seed", range(60))
def test_any_set_of_folds(seed: int) -> None:
    chosen = random.Random(seed)
    tree = Tree(chosen)
    conditions = Conditions()
    found = with_folds(tree.rows, frozenset(), conditions, 5000)
    keys = tree.folds()
    for _ in range(20):
        opened = frozenset(key for key in keys if chosen.random() < 0.5)
        assert seen(found, conditions, opened) == tree.rows(opened)


def test_what_has_no_room_keeps_its_fold() -> None:
    def rows(opened: frozenset[str]) -> Sequence[Row]:
        many = [Row(body=((str(at), "text"),)) for at in range(50 if "big" in opened else 0)]
        few = [Row(body=(("x", "text"),))] * ("small" in opened)
        heads = {key: Row(body=((key, "text"),), opens=Fold(key)) for key in ("big", "small")}
        return [heads["big"], *many, heads["small"], *few]

    found = with_folds(rows, frozenset(), Conditions(), 20)
    assert [row.text for row in found.rows if row.opens] == ["big", "small", "small"]
    assert found.folds[0] < 0 <= found.folds[1]
    assert len(with_folds(rows, frozenset({"big"}), Conditions(), 20).rows) == 20


def test_a_pane_that_is_laid_out_anew_is_not_unfolded() -> None:
    def rows(opened: frozenset[str]) -> Sequence[Row]:
        width = 9 if "a" in opened else 5
        head = Row(body=(("title".ljust(width), "text"),))
        return [head, Row(body=(("a", "text"),), opens=Fold("a")), *[Row()] * ("a" in opened)]

    found = with_folds(rows, frozenset(), Conditions(), 100)
    assert len(found.rows) == 2
    assert max(found.folds) < 0


@pytest.mark.parametrize("trace", [block_trace, block_profile])
def test_the_panes_of_a_trace(trace) -> None:  # type: ignore[no-untyped-def]
    chosen = random.Random(0)
    tour = Tour(whole(Recording(trace())), 1_000_000, 1)
    tested = set()
    for name, arrangement in ARRANGEMENTS.items():
        navigator = copy_of(tour.reader.navigator)
        navigator.go(name)
        for pane in {slot.pane for column in arrangement.columns for slot in column.slots}:
            content = tour._content(navigator, pane, CELLS)
            found = tour._folded(navigator, pane, CELLS, content)
            folds = list(tour.conditions.folds.values())
            keys = sorted({folds[number] for number in found.folds if number >= 0})
            for _ in range(3 if keys else 0):
                opened = frozenset(key for key in keys if chosen.random() < 0.5)
                copy = copy_of(navigator)
                copy.view.unfolded = set(opened)
                rows = list(tour._content(copy, pane, CELLS).rows)
                assert seen(found, tour.conditions, opened) == rows
                tested.add(pane)
    assert tested >= (
        {"guards", "graph", "fusion"} if trace is block_trace else {"guards", "graph"}
    )
