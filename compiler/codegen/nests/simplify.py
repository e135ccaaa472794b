"""Simplifies a nest to the fewest axes: none of size 1, none contiguous with the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tcw.compiler.loops.expressions import (
    Address,
    Expression,
    Position,
    Read,
    ReadIndexed,
)
from tcw.compiler.loops.nest import (
    Axis,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    addresses,
    rewritten,
)
from tcw.compiler.loops.sizes import multiply


def simplify(nest: Nest) -> Nest:
    """Drop axes of size 1, then merge adjacent axes that every access traverses as one."""
    groups: list[list[int]] = []
    held = _held(nest)
    for place, axis in enumerate(nest.axes):
        if axis.size == 1 and place not in held:
            continue
        if groups and groups[-1][-1] == place - 1 and _runs_on(nest, place - 1):
            groups[-1].append(place)
        else:
            groups.append([place])
    if len(groups) == len(nest.axes):
        return nest
    return regroup(nest, groups) if groups else regroup(nest, [[0]])


def _held(nest: Nest) -> frozenset[int]:
    """Axes that a scan or reduction refers to."""
    held: set[int] = set()
    for statement in nest.statements:
        if isinstance(statement, Reduction):
            held.update(statement.over)
        elif isinstance(statement, ScanAlong):
            held.add(statement.axis)
    return frozenset(held)


def _runs_on(nest: Nest, place: int) -> bool:
    first, second = nest.axes[place], nest.axes[place + 1]
    if first.reduced != second.reduced:
        return False
    for statement in nest.statements:
        if isinstance(statement, ScanAlong) and statement.axis in (place, place + 1):
            return False
        over = statement.over if isinstance(statement, Reduction) else ()
        if any((place in axes) != (place + 1 in axes) for axes in (statement.axes, over)):
            return False
        for address in addresses(statement):
            outer, inner = address.strides[place : place + 2]
            if outer != multiply(inner, second.size):
                return False
    return True


def regroup(nest: Nest, groups: list[list[int]]) -> Nest:
    """The nest with each group of axes merged into one axis; axes in no group are dropped."""
    number = {axis: place for place, group in enumerate(groups) for axis in group}

    def address(old: Address) -> Address:
        return replace(old, strides=tuple(old.strides[group[-1]] for group in groups))

    def axes(old: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(number[axis] for axis in old if axis in number))

    sizes = tuple(Axis(nest.size(group), nest.axes[group[0]].reduced) for group in groups)
    changed = tuple(remade(statement, address, axes) for statement in nest.statements)
    return replace(nest, axes=sizes, statements=changed)


def remade(
    statement: Statement,
    address: Callable[[Address], Address],
    axes: Callable[[tuple[int, ...]], tuple[int, ...]],
) -> Statement:
    """A statement with its axes and addresses replaced."""

    def leaf(part: Expression) -> Expression:
        if isinstance(part, (Read, ReadIndexed, Position)):
            return replace(part, address=address(part.address))
        return part

    moved = replace(rewritten(statement, leaf), axes=axes(statement.axes))
    if isinstance(moved, Reduction):
        return replace(moved, over=axes(moved.over))
    if isinstance(moved, ScanAlong):
        (axis,) = axes((moved.axis,))
        return replace(moved, axis=axis)
    return replace(moved, address=address(moved.address)) if isinstance(moved, Write) else moved


def behind_a_leading_axis(
    statements: Sequence[Statement], nest: Nest, axes: Sequence[int]
) -> list[Statement]:
    """Statements over some of a nest's axes, in a nest with another axis in front of these."""
    whole = replace(nest, statements=tuple(statements))
    return [
        remade(
            statement,
            lambda address: replace(address, strides=(0, *address.strides)),
            lambda old: tuple(axis + 1 for axis in old),
        )
        for statement in regroup(whole, [[axis] for axis in axes]).statements
    ]
