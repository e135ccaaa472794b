"""The value graph: the result of lowering one ATen graph, in topological order.

    graph  := node*
    node   := Input | Map | Reduce | Scan | Buffer Store* | Call Result*
    Map    := value[i] = expression(i)                      for i in domain
    Reduce := value[kept] = op over reduced of expression   each digit is kept or reduced
    Scan   := value[i] = op over all j <= i along one digit
    Store  := buffer[view(i) + terms] = expression(i)       piece of a cat or pad, scatter, mutation
    Call   := an ATen operation on memory: GEMM, convolution, attention, anything without a lowering

A value is stored in a flat space, in storage order: flat index = element offset in its memory. The
digits of a domain are therefore the tensor's dimensions from the widest stride to the narrowest.
Views never become nodes; they are layouts from the reader's flat index to the value's. Every node
records the names of the ATen nodes that it computes (`origins`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from tcw.compiler.loops.expressions import Expression, Gather, IndexTerm, Load, walk
from tcw.compiler.loops.layouts import Shape, View
from tcw.compiler.loops.sizes import Size, product

ReduceOp = Literal[
    "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "exp_sum", "deviations"
]
"""`exp_sum` is the sum of exp(x - max x), `deviations` that of (x - mean x)^2, in one pass over
x; code generation replaces two reductions with one if a single pass is cheaper. `max` and `min`
propagate NaN; `argmax` and `argmin` return the first matching index, or that of the first NaN."""
ARG: dict[str, ReduceOp] = {"argmax": "max", "argmin": "min"}
"""Reductions that find where an element is -> the one that finds the element."""
ScanOp = Literal["sum", "prod", "max", "min"]
StoreMode = Literal["set", "add", "mul", "maximum", "minimum"]
"""What a store does with the element that is there: replace it, or combine it by this operator."""

DRAWS = "tcw."
"""The namespace of calls that draw random numbers with the engine's own library. Their arguments
are the sizes, strides and dtype of the result, and the parameters of the distribution; the numbers
lie in memory order, and nothing else holds the memory."""

HIGHER_ORDER = "torch.ops.higher_order."
"""The namespace of calls that run subgraphs. Nothing else holds the memory of their results."""


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the caller passes. Index 0 is its first element."""

    name: str
    dtype: str
    shape: Shape
    strides: tuple[Size, ...]
    constant: bool = False
    """Owned by the graph, not passed by the caller."""


@dataclass(frozen=True, slots=True)
class Map:
    """A pointwise computation; its value is the size of its domain."""

    name: str
    dtype: str
    domain: Shape
    expression: Expression
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction over the digits marked True. The value's flat space spans the remaining digits.

    `argmax` and `argmin` return the flat index within the reduced digits, as int64. `dtype` is that
    of the value; the expression's dtype is that of the accumulator.
    """

    name: str
    dtype: str
    op: ReduceOp
    domain: Shape
    reduced: tuple[bool, ...]
    expression: Expression
    origins: tuple[str, ...] = ()

    @property
    def kept(self) -> Shape:
        return tuple(s for s, away in zip(self.domain, self.reduced, strict=True) if not away)


@dataclass(frozen=True, slots=True)
class Scan:
    """An inclusive scan along one digit of the domain."""

    name: str
    dtype: str
    op: ScanOp
    domain: Shape
    digit: int
    expression: Expression
    reverse: bool = False
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Uninitialised memory that the following `Store`s fill."""

    name: str
    dtype: str
    shape: Shape
    """Dimensions from the widest stride to the narrowest."""


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[view(i) + sum(term)] = expression(i), or combined with it, for i in the domain.

    Nodes after it in the graph see its writes; nodes before it do not. Several `i` may map to the
    same element: in mode `set` the last one in row-major order wins; in the others all are
    combined, in this order.
    """

    name: str
    buffer: str
    """A `Buffer`, or an `Input` that the graph mutates."""
    dtype: str
    domain: Shape
    view: View
    expression: Expression
    terms: tuple[IndexTerm, ...] = ()
    mode: StoreMode = "set"
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operand:
    """A strided tensor over the memory of a value: an argument of a call, or an output."""

    value: str
    dtype: str
    shape: Shape
    strides: tuple[Size, ...]
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph of the ATen graph's own, an argument of a call that runs it: a branch of a `cond`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that a call returns, with ATen's strides. Its flat index is its element offset."""

    name: str
    dtype: str
    shape: Shape
    strides: tuple[Size, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One ATen operation on tensors in memory."""

    name: str
    target: str
    """For example `aten.mm.default`; `tcw.normal.default` is one of `DRAWS`, and
    `torch.ops.higher_order.cond` runs subgraphs."""
    arguments: tuple[object, ...]
    """Operands, subgraphs, sizes, None, and literals (numbers, strings, dtypes, dictionaries of
    them); possibly nested in tuples."""
    keywords: tuple[tuple[str, object], ...] = ()
    results: tuple[Result | None, ...] = ()
    """One per returned element; None if the element is not a tensor or is unused."""
    single: bool = True
    """The call returns one tensor, not a tuple."""
    mutates: tuple[str, ...] = ()
    """Values whose memory the call writes."""
    aliases: tuple[str, ...] = ()
    """Values whose memory the results may share."""
    reason: str = ""
    """Why there is no loop: `no lowering for X`. "" if a library call is the intended choice."""
    origins: tuple[str, ...] = ()
    effect: bool = False
    """The call draws random numbers or has another side effect. Such calls are never dropped, and
    keep their relative order."""

    def operands(self) -> Iterator[Operand]:
        yield from operands(self.arguments)
        yield from operands(tuple(value for _, value in self.keywords))


def operands(arguments: object) -> Iterator[Operand]:
    """Every operand in a tree of arguments, in order."""
    if isinstance(arguments, Operand):
        yield arguments
    elif isinstance(arguments, (tuple, list)):
        for item in arguments:
            yield from operands(item)


Node = Input | Map | Reduce | Scan | Buffer | Store | Call
Compute = Map | Reduce | Scan | Store


@dataclass(slots=True)
class Graph:
    """One lowered graph."""

    name: str
    """For example `0/0/forward`."""
    nodes: list[Node] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    """The caller's arguments in order: the name of an `Input`, or a symbol for a size."""
    outputs: list[Operand | Size | bool | float | None] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    """Symbols that no argument passes: name -> Python expression (with `math`) of other symbols, in
    an order in which they can be computed (`z0`: `s0//2`). A few use inputs
    (`primals_1.size(0)`)."""
    constants: dict[str, str] = field(default_factory=dict)
    """Constant inputs: name -> attribute of the ATen graph's module that holds the tensor."""
    tensors: dict[str, Operand] = field(default_factory=dict)
    """ATen graph nodes -> their tensor in memory after the graph has run. Nodes that are not
    strided tensors over a value are left out."""
    hints: dict[str, int] = field(default_factory=dict)
    """The input sizes at compile time. They weigh choices; correctness must not depend on them."""
    divisible: set[str] = field(default_factory=set)
    """Symbols that are multiples of 16 in every call, by a guard."""

    def values(self) -> dict[str, Input | Map | Reduce | Scan | Buffer | Result]:
        """Everything that a `Load` or an `Operand` can refer to, by name."""
        found: dict[str, Input | Map | Reduce | Scan | Buffer | Result] = {}
        for node in self.nodes:
            if isinstance(node, Call):
                found.update((result.name, result) for result in node.results if result)
            elif not isinstance(node, Store):
                found[node.name] = node
        return found

    def returned(self) -> set[str]:
        """The values of its outputs."""
        return {output.value for output in self.outputs if isinstance(output, Operand)}


def extent(value: Input | Map | Reduce | Scan | Buffer | Result) -> Size:
    """The number of elements in a value's flat space. Inputs and results count as if dense."""
    return product(shape_of(value))


def shape_of(value: Input | Compute | Buffer | Result) -> Shape:
    """The digits of a value's flat space; of a store, those that it goes through."""
    if isinstance(value, Reduce):
        return value.kept
    return value.domain if isinstance(value, (Map, Scan, Store)) else value.shape


def reads(node: Compute) -> Iterator[Load | Gather]:
    """What the node's expressions read, in evaluation order."""
    return (part for part in expressions(node) if isinstance(part, (Load, Gather)))


def expressions(node: Compute) -> Iterator[Expression]:
    """All expressions of a node, with their subexpressions, in evaluation order."""
    if not isinstance(node, Store) or not node.terms:
        return walk(node.expression)
    return chain(walk(node.expression), *(walk(term.index) for term in node.terms))


def written_values(node: Node) -> tuple[str, ...]:
    """The values of other nodes whose memory a node writes."""
    if isinstance(node, Store):
        return (node.buffer,)
    return node.mutates if isinstance(node, Call) else ()
