"""Patches and their undo."""

from __future__ import annotations

from tcw.compiler.control.hooks import after_call, before_call, patch, undo_all


class Owner:
    value = 1


class Heir(Owner):
    pass


def test_undo_restores_what_was_there_and_runs_once() -> None:
    undo = undo_all(patch(Owner, "value", 2), patch(Heir, "value", 3), patch(Owner, "value", 4))
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
    undo_all(lambda: order.append("first"), lambda: order.append("last"))()
    assert order == ["last", "first"]


class Called:
    def method(self, value: int) -> int:
        return value + 1

    @staticmethod
    def alone(value: int) -> int:
        return value + 2

    @classmethod
    def of_class(cls, value: int) -> int:
        return value + 3


def test_notes_are_called_with_each_call_and_its_result() -> None:
    noted: list[object] = []
    called = Called()
    undo = undo_all(
        before_call(Called, "method", lambda self, value: noted.append((self, value))),
        after_call(Called, "method", lambda result, self, value: noted.append(result)),
        after_call(Called, "alone", lambda result, value: noted.append((result, value))),
        before_call(Called, "of_class", lambda value: noted.append(value)),
    )
    assert (called.method(1), called.alone(1), Called.of_class(value=1)) == (2, 3, 4)
    undo()
    assert noted == [(called, 1), 2, (3, 1), 1]
    assert (called.method(1), called.alone(1), called.of_class(1)) == (2, 3, 4)
    assert len(noted) == 4
