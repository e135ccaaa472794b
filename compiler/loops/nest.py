"""Fused loop nests: what fusion makes, what code generation reads, what a person is shown.

    nest      := axis* statement*
    axis      := size, kept or reduced
    statement := Let     name = expression                      in the loop of its innermost axis
               | Reduction name op= expression                  over some axes; complete after them
               | Scan      name = op over j <= i of expression  along one axis
               | Write     buffer[address] = or += expression
    leaves    := Read(buffer, address) | ReadIndexed | Position | Local(name) | Const | SizeOf

The axes are the digits that all accesses of the group can be written in, the most significant
first; the code generator chooses the order of the loops. A `Local` names a statement's value. A
reduction over all reduced axes is a main reduction: each row completes it, and later statements
may use it. A reduction over other axes is a rider: it is complete only after the whole nest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.loops.expressions import Address, Expression, IndexTerm, Read, ReadIndexed, walk
from compiler.loops.graph import ReduceOp, ScanOp, StoreMode
from compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop: `size` positions, of rows (kept) or along one (reduced)."""

    size: Size
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class Let:
    """A value of its own, held in a register (or in whatever code generation keeps it)."""

    name: str
    dtype: str
    expression: Expression
    axes: tuple[int, ...]
    """The axes that it varies over: it is computed in the innermost of their loops."""
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduction:
    """`dtype` is that of the result; the expression's is that of the accumulation."""

    name: str
    dtype: str
    op: ReduceOp
    expression: Expression
    over: tuple[int, ...]
    """The axes that it reduces. It runs over these and over `axes`."""
    axes: tuple[int, ...]
    """The axes that its result varies over."""
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanAlong:
    """An inclusive scan: at each position of `axis` all up to it (`reverse`: all from it on)."""

    name: str
    dtype: str
    op: ScanOp
    expression: Expression
    axis: int
    reverse: bool
    axes: tuple[int, ...]
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """buffer[address + sum(index * stride)] = or += the expression, in the buffer's dtype."""

    buffer: str
    dtype: str
    address: Address
    expression: Expression
    axes: tuple[int, ...]
    """The axes it runs over; once for each of their positions."""
    terms: tuple[IndexTerm, ...] = ()
    mode: StoreMode = "set"
    ordered: bool = False
    """Several positions may hit one element: positions are to be taken in row-major order."""
    origins: tuple[str, ...] = ()


Statement = Let | Reduction | ScanAlong | Write


@dataclass(frozen=True, slots=True)
class Nest:
    """One loop nest. Statements stand in an order in which they can be computed for an element."""

    name: str
    axes: tuple[Axis, ...]
    statements: tuple[Statement, ...]
    label: str = ""
    """Words: `softmax`, `add + layer norm`."""

    def origins(self) -> tuple[str, ...]:
        """Nodes of the ATen graph that it computes, each once, in order."""
        return tuple(dict.fromkeys(o for s in self.statements for o in s.origins))

    def reads(self) -> tuple[str, ...]:
        """Buffers that it reads, each once, in order."""
        found: dict[str, None] = {}
        for statement in self.statements:
            for part in expressions(statement):
                if isinstance(part, (Read, ReadIndexed)):
                    found[part.buffer] = None
        return tuple(found)

    def writes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.buffer for s in self.statements if isinstance(s, Write)))


def expressions(statement: Statement) -> Iterator[Expression]:
    """Every expression of a statement, and all in them."""
    yield from walk(statement.expression)
    if isinstance(statement, Write):
        for term in statement.terms:
            yield from walk(term.index)
