"""Fused loop nests, and a program of them and calls, in the order in which they run: the output of
fusion, the input of code generation, and what viewers show.

    nest      := axis* statement*
    axis      := size, kept or reduced
    statement := Let     name = expression                      in the loop of its innermost axis
               | Reduction name op= expression                  over some axes; complete after them
               | Scan      name = op over j <= i of expression  along one axis
               | Write     buffer[address] = or += expression
    leaves    := Read(buffer, address) | ReadIndexed | Position | Local(name) | Const | SizeOf

The axes are the digits in which all accesses of the group can be expressed, most significant
first; the code generator chooses the loop order. A `Local` refers to a statement's value. A
reduction over all reduced axes is a main reduction: it completes in each row, and later statements
may use it. A reduction over other axes is a rider: it finishes only after the whole nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import (
    Address,
    Expression,
    IndexTerm,
    Position,
    Read,
    ReadIndexed,
    SizeOf,
    rewrite,
    walk,
)
from tcw.compiler.loops.graph import Call, Graph, ReduceOp, ScanOp, StoreMode
from tcw.compiler.loops.layouts import Shape
from tcw.compiler.loops.sizes import Size, multiply, product, symbols_of


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of `size` iterations: over rows (kept) or along a row (reduced)."""

    size: Size
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class Let:
    """A named value, held in a register or wherever code generation places it."""

    name: str
    dtype: str
    expression: Expression
    axes: tuple[int, ...]
    """The axes that it varies over. It is computed in the innermost of their loops."""
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduction:
    """`dtype` is that of the result; the expression's dtype is that of the accumulator."""

    name: str
    dtype: str
    op: ReduceOp
    expression: Expression
    over: tuple[int, ...]
    """The axes that it reduces. The expression is evaluated over these and over `axes`."""
    axes: tuple[int, ...]
    """The axes that the result varies over."""
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanAlong:
    """An inclusive scan: each position combines all up to it (`reverse`: all from it on)."""

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
    """The axes that it iterates over, writing once per position."""
    terms: tuple[IndexTerm, ...] = ()
    mode: StoreMode = "set"
    ordered: bool = False
    """Several positions may write one element: they must run in row-major order."""
    origins: tuple[str, ...] = ()


Statement = Let | Reduction | ScanAlong | Write


@dataclass(frozen=True, slots=True)
class Nest:
    """One loop nest. The statements are in an order in which they can run for one element."""

    name: str
    axes: tuple[Axis, ...]
    statements: tuple[Statement, ...]
    label: str = ""
    """A readable name: `softmax`, `add + layer norm`."""

    def origins(self) -> tuple[str, ...]:
        """The ATen nodes that it computes, in order, without duplicates."""
        return tuple(dict.fromkeys(o for s in self.statements for o in s.origins))

    def reads(self) -> tuple[str, ...]:
        """The buffers that it reads, in order, without duplicates."""
        return tuple(dict.fromkeys(read.buffer for read in reads_in(self.statements)))

    def is_main(self, reduction: Reduction) -> bool:
        """Whether the reduction completes in each row."""
        return set(reduction.over) == {i for i, axis in enumerate(self.axes) if axis.reduced}

    def size(self, axes: Iterable[int]) -> Size:
        """The number of positions along these axes."""
        return product(self.axes[axis].size for axis in axes)

    def writes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.buffer for s in self.statements if isinstance(s, Write)))


def runs_over(statement: Statement) -> tuple[int, ...]:
    """The axes at whose positions the statement's expression is evaluated."""
    over = statement.over if isinstance(statement, Reduction) else ()
    return (*statement.axes, *over)


def reads_in(statements: Iterable[Statement]) -> Iterator[Read | ReadIndexed]:
    """The reads of these statements, each as often as it occurs."""
    for statement in statements:
        for part in expressions(statement):
            if isinstance(part, (Read, ReadIndexed)):
                yield part


def expressions(statement: Statement) -> Iterator[Expression]:
    """All expressions of a statement, with their subexpressions."""
    if not isinstance(statement, Write) or not statement.terms:
        return walk(statement.expression)
    return chain(walk(statement.expression), *(walk(term.index) for term in statement.terms))


def rewritten(statement: Statement, leaf: Callable[[Expression], Expression]) -> Statement:
    """The statement with `leaf` applied to every leaf of its expressions."""
    changed = replace(statement, expression=rewrite(statement.expression, leaf))
    if isinstance(changed, Write) and changed.terms:
        terms = tuple(replace(term, index=rewrite(term.index, leaf)) for term in changed.terms)
        return replace(changed, terms=terms)
    return changed


def addresses(statement: Statement) -> Iterator[Address]:
    """All addresses of a statement."""
    if isinstance(statement, Write):
        yield statement.address
    for part in expressions(statement):
        if isinstance(part, (Read, ReadIndexed, Position)):
            yield part.address


def index_terms(statement: Statement) -> Iterator[IndexTerm]:
    """All index terms of a statement."""
    if isinstance(statement, Write):
        yield from statement.terms
    for part in expressions(statement):
        if isinstance(part, ReadIndexed):
            yield from part.terms


def symbols_in(nest: Nest) -> list[str]:
    """The symbols of a nest's sizes, in order of appearance."""
    found: dict[str, None] = {}

    def note(*sizes: Size) -> None:
        for size in sizes:
            found.update(dict.fromkeys(sorted(symbols_of(size))))

    note(*(axis.size for axis in nest.axes))
    for statement in nest.statements:
        for address in addresses(statement):
            note(*address.strides, address.offset)
            for layout in address.then:
                note(*layout.shape, *layout.strides, layout.offset)
        note(*(part.size for part in expressions(statement) if isinstance(part, SizeOf)))
        for term in index_terms(statement):
            note(term.size, term.stride)
    return list(found)


@dataclass(frozen=True, slots=True)
class Memory:
    """A value in memory. It is dense: its flat index is the element offset."""

    name: str
    dtype: str
    shape: Shape
    """Dimensions from the widest stride to the narrowest."""
    size: Size

    @property
    def bytes(self) -> Size:
        return multiply(self.size, BYTES[self.dtype])


@dataclass(slots=True)
class Program:
    """The output of fusion."""

    graph: Graph
    steps: tuple[Nest | Call, ...]
    memories: dict[str, Memory] = field(default_factory=dict)
    """The values that nests write: outputs, and whatever another nest or a call reads."""
