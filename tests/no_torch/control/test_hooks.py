"""Patches and their undo."""

from __future__ import annotations

from compiler.control.hooks import patch, undo_all


class Owner:
    value = 1


class Heir(Owner):
    pass


def test_undo_restores_what_was_there_and_runs_once() -> None:
    undo = undo_all([patch(Owner, "value", 2), patch(Heir, "value", 3), patch(Owner, "value", 4)])
    assert (Owner.value, Heir.value) == (4, 3)
    undo()
    assert Owner.value == 1
    assert "value" not in vars(Heir)
    Owner.value = 5
    undo()
    assert Owner.value == 5
    Owner.value = 1


def test_the_last_is_undone_first() -> None:
    order: list[str] = []
    undo_all([lambda: order.append("first"), lambda: order.append("last")])()
    assert order == ["last", "first"]
