"""The registers that vary along an axis, whose sizes decide how many lanes fit a vector."""

from __future__ import annotations

from collections.abc import Iterator

from tcw.compiler.codegen.cpp.nests.windows import window
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.dtypes import BYTES, compute_dtype
from tcw.compiler.loops.expressions import Expression, Op, Position, Read, ReadIndexed
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Reduction, Write
from tcw.compiler.loops.sizes import Size, multiply

MOST_POSITIONS = 1 << 31
"""Number of elements whose positions fit in a 32-bit integer."""


def itemsizes(facts: Facts, lane: int) -> tuple[int, ...]:
    """The sizes in bytes of all registers that vary along an axis."""
    sizes: set[int] = set()

    def note(expression: Expression) -> None:
        for part in _registers(facts, expression, lane):
            if lane in facts.axes(part):
                sizes.add(BYTES[compute_dtype(part.dtype)])
                if isinstance(part, (Read, Position)) and part.address.then:
                    sizes.add(8)

    for statement in facts.nest.statements:
        runs = lane in facts.domain(statement)
        note(statement.expression)
        if isinstance(statement, Write):
            if runs:
                sizes.add(BYTES[compute_dtype(statement.dtype)])
                sizes.add(BYTES[compute_dtype(statement.expression.dtype)])
                if statement.address.then:
                    sizes.add(8)
            for term in statement.terms:
                note(term.index)
        elif runs:
            sizes.add(BYTES[compute_dtype(statement.expression.dtype)])
            if lane in statement.axes:
                sizes.add(BYTES[compute_dtype(statement.dtype)])
            if isinstance(statement, Reduction) and _counts_far(facts, statement):
                sizes.add(8)
    return tuple(sorted(sizes))


def _registers(facts: Facts, expression: Expression, lane: int) -> Iterator[Expression]:
    """The parts of an expression that take a register, if they vary along an axis."""
    if isinstance(expression, ReadIndexed) and window(facts, expression, lane) is not None:
        yield expression
        return
    if narrows(expression, lane):
        yield expression
        return
    if isinstance(expression, Op):
        for argument in expression.args:
            yield from _registers(facts, argument, lane)
    elif isinstance(expression, ReadIndexed):
        for term in expression.terms:
            yield from _registers(facts, term.index, lane)
    yield expression


def narrows(expression: Expression, lane: int) -> bool:
    """Whether an expression converts 8 bytes, contiguous in memory along an axis, to 4: each half
    of a vector is converted as it is loaded, so no register holds the wide elements."""
    if not isinstance(expression, Op) or expression.name != "convert":
        return False
    (read,) = expression.args
    return (
        isinstance(read, Read)
        and not read.address.then
        and read.address.strides[lane] == 1
        and BYTES[compute_dtype(read.dtype)] == 8
        and BYTES[compute_dtype(expression.dtype)] == 4
        and expression.dtype != "bool"
    )


def _counts_far(facts: Facts, statement: Reduction) -> bool:
    """Whether positions of an argmax may not fit in the 32 bits of a lane."""
    if statement.op not in ARG:
        return False
    elements: Size = 1
    for axis in statement.over:
        elements = multiply(elements, facts.nest.axes[axis].size)
    return not isinstance(elements, int) or elements > MOST_POSITIONS
