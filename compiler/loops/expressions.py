"""Expressions: the computation of one element of a domain. Immutable trees without sharing.

expression := Op(name, expression*) | leaf
leaf       := Const | SizeOf                           everywhere
            | Load | Gather | Iota                     in the value graph: views of flat indices
            | Read | ReadIndexed | Position | Local    in a nest: addresses along its axes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tcw.compiler.loops.layouts import Layout, View, compose_views
from tcw.compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class Load:
    """The element of a value at view(flat index of the domain)."""

    value: str
    view: View
    dtype: str


@dataclass(frozen=True, slots=True)
class IndexTerm:
    """One index of an advanced indexing: `index` (int64, -size <= index < size) times a stride."""

    index: Expression
    size: Size
    stride: Size
    wraps: bool = True
    """Negative indices count from the end."""
    checked: bool = True
    """An out-of-range index raises an error, as in eager. If False, it is known to be in range."""
    says: str = ""
    """The operation whose error wording is used: `index`, `gather`, `target`; "" for embeddings."""
    dim: int = 0
    """The dimension that the error message names."""


@dataclass(frozen=True, slots=True)
class Gather:
    """The element of an in-memory value at view(flat index) + sum(index * stride)."""

    value: str
    view: View
    terms: tuple[IndexTerm, ...]
    dtype: str
    otherwise: bool | int | float | None = None
    """The element where an index is out of range, in which case no memory is read. None: no index
    is, or the term says what happens."""


@dataclass(frozen=True, slots=True)
class Const:
    """The same number for every element of the domain."""

    number: bool | int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Iota:
    """view(flat index of the domain), as an int64."""

    view: View
    dtype: str = "int64"


@dataclass(frozen=True, slots=True)
class SizeOf:
    """The numeric value of a symbolic size."""

    size: Size
    dtype: str = "int64"


@dataclass(frozen=True, slots=True)
class Op:
    """An operator of `OPERATORS` applied to expressions of the dtypes that it expects."""

    name: str
    args: tuple[Expression, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Address:
    """then(offset + sum(axis * stride)): an element offset in a buffer, or a position.

    `then` is empty unless the access needs division and remainder; its layouts apply last to first.
    """

    strides: tuple[Size, ...]
    """One stride per axis of the nest."""
    offset: Size = 0
    then: View = ()


@dataclass(frozen=True, slots=True)
class Read:
    """The element of a buffer at an address."""

    buffer: str
    address: Address
    dtype: str


@dataclass(frozen=True, slots=True)
class ReadIndexed:
    """buffer[address + sum(index * stride)], or `otherwise` where an index is out of range."""

    buffer: str
    address: Address
    terms: tuple[IndexTerm, ...]
    dtype: str
    otherwise: bool | int | float | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The address itself as an int64."""

    address: Address
    dtype: str = "int64"


@dataclass(frozen=True, slots=True)
class Local:
    """The value of an earlier statement of the same nest."""

    name: str
    dtype: str


Expression = Load | Gather | Iota | Const | SizeOf | Op | Read | ReadIndexed | Position | Local
"""`Load`, `Gather` and `Iota` are the leaves of the value graph; fusion turns them into `Read`,
`ReadIndexed`, `Position` and `Local`. `Const` and `SizeOf` occur in both."""


def convert(expression: Expression, dtype: str) -> Expression:
    """The expression in another dtype. Constants are folded if their conversion is exact."""
    if expression.dtype == dtype:
        return expression
    if (
        isinstance(expression, Const)
        and dtype in ("float64", "float32")
        and (not isinstance(expression.number, int) or abs(expression.number) < 1 << 24)
    ):
        return Const(float(expression.number), dtype)
    return Op("convert", (expression,), dtype)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its subexpressions, arguments first."""
    expressions: list[Expression] = []
    _collect(expression, expressions)
    return iter(expressions)


def _collect(expression: Expression, found: list[Expression]) -> None:
    if isinstance(expression, Op):
        for argument in expression.args:
            _collect(argument, found)
    elif isinstance(expression, (Gather, ReadIndexed)):
        for term in expression.terms:
            _collect(term.index, found)
    found.append(expression)


def rewrite(expression: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """The expression with each leaf replaced."""
    if isinstance(expression, Op):
        args = tuple(rewrite(argument, leaf) for argument in expression.args)
        return expression if args == expression.args else replace(expression, args=args)
    if isinstance(expression, (Gather, ReadIndexed)):
        terms = tuple(replace(t, index=rewrite(t.index, leaf)) for t in expression.terms)
        return leaf(expression if terms == expression.terms else replace(expression, terms=terms))
    return leaf(expression)


def through(expression: Expression, view: View, domain: Size, seen: Size) -> Expression:
    """The expression at view(i) instead of i; `domain` and `seen`: the sizes before and after."""
    moved = _seen_through(view, domain, seen)
    return rewrite(expression, lambda part: leaf_through(part, moved)) if moved else expression


def leaf_through(part: Expression, view: View) -> Expression:
    """One leaf at view(i) instead of i; a gather's indices are separate leaves."""
    if isinstance(part, (Load, Gather, Iota)):
        return replace(part, view=compose_views(part.view, view))
    return part


def _seen_through(view: View, domain: Size, seen: Size) -> View:
    return view if view or domain == seen else (Layout((seen,), (1,)),)
