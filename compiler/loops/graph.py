"""The value graph: what lowering makes of one ATen graph, in topological order.

    graph  := node*
    node   := Input | Map | Reduce | Scan | Buffer Store* | Call Result*
    Map    := value[i] = expression(i)                      for i in domain
    Reduce := value[kept] = op over reduced of expression   each digit is kept or reduced
    Scan   := value[i] = op over all j <= i along one digit
    Store  := buffer[view(i) + terms] = expression(i)       piece of a cat or pad, scatter, mutation
    Call   := an ATen operation on memory: GEMM, convolution, attention, anything without a lowering

A value lives in a flat space, its storage order: flat index = element offset in its memory, so the
digits of a domain are the tensor's dimensions from the widest stride to the narrowest. Views never
become nodes; they are layouts from the reader's flat index to the value's. Every node carries the
names of the ATen graph's nodes that it computes (`origins`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from compiler.loops.expressions import Expression, Gather, IndexTerm, Load, walk
from compiler.loops.layouts import Shape, View
from compiler.loops.sizes import Size, product

ReduceOp = Literal["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "exp_sum"]
"""`exp_sum`: the sum of exp(x - max x), in one walk over x. Code generation makes it of two
reductions where one walk pays."""
"""max and min carry NaN; argmax and argmin answer the first index, of a NaN if there is one."""
ScanOp = Literal["sum", "prod", "max", "min"]
StoreMode = Literal["set", "add"]


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the caller passes; index 0 is its first element, whatever its offset."""

    name: str
    dtype: str
    shape: Shape
    strides: tuple[Size, ...]
    constant: bool = False
    """Held by the graph, not passed by the caller."""


@dataclass(frozen=True, slots=True)
class Map:
    """A pointwise computation; its value is as large as its domain."""

    name: str
    dtype: str
    domain: Shape
    expression: Expression
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction over the digits marked True; the value's flat space is that of the others.

    argmax and argmin answer the flat index within the reduced digits, as int64. `dtype` is that of
    the value; the expression has the dtype that the accumulation is carried out in.
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
    """Memory without content, which the `Store`s that follow it fill."""

    name: str
    dtype: str
    shape: Shape
    """From the widest stride to the narrowest."""


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[view(i) + sum(term)] = or += expression(i), for i in the domain.

    Readers after it in the graph see what it wrote, readers before it do not. Several `i` may hit
    the same element: with `set` the last one in row-major order wins, with `add` all are added.
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
class Result:
    """A tensor that a call answers; its flat index is its element offset, strides from ATen."""

    name: str
    dtype: str
    shape: Shape
    strides: tuple[Size, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One ATen operation on tensors in memory."""

    name: str
    target: str
    """`aten.mm.default`."""
    arguments: tuple[object, ...]
    """Operands, numbers, strings, dtypes and such as they stand, sizes, None; nested in tuples."""
    keywords: tuple[tuple[str, object], ...] = ()
    results: tuple[Result | None, ...] = ()
    """One for each element of what it answers; None where that is no tensor or nobody reads it."""
    single: bool = True
    """It answers one tensor, not a tuple."""
    mutates: tuple[str, ...] = ()
    """Values whose memory it writes."""
    aliases: tuple[str, ...] = ()
    """Values whose memory its results may share."""
    reason: str = ""
    """`no lowering for X`; "" where a library call is what we want."""
    origins: tuple[str, ...] = ()
    effect: bool = False
    """It draws random numbers or does something else that is not in its results: calls with an
    effect are never dropped and keep their order among themselves."""

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
    """`0/0/forward`."""
    nodes: list[Node] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    """The caller's arguments in order: an `Input`'s name, or a symbol for a size."""
    outputs: list[Operand | Size | bool | float | None] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    """Symbols that no argument passes: name -> Python expression (with `math`) of others, in an
    order in which they can be computed (`z0`: `s0//2`); rarely of inputs (`primals_1.size(0)`)."""
    constants: dict[str, str] = field(default_factory=dict)
    """Constant inputs: name -> the attribute of the ATen graph's module that holds the tensor."""
    tensors: dict[str, Operand] = field(default_factory=dict)
    """Nodes of the ATen graph -> where their tensor lies, once the graph has run; without those
    that are no strided tensor over a value."""
    hints: dict[str, int] = field(default_factory=dict)
    """The sizes of the inputs that are compiled for, to weigh choices with; never to rely on."""

    def values(self) -> dict[str, Input | Map | Reduce | Scan | Buffer | Result]:
        """Everything that a `Load` or an `Operand` can name."""
        found: dict[str, Input | Map | Reduce | Scan | Buffer | Result] = {}
        for node in self.nodes:
            if isinstance(node, Call):
                found.update((result.name, result) for result in node.results if result)
            elif not isinstance(node, Store):
                found[node.name] = node
        return found


def extent(value: Input | Map | Reduce | Scan | Buffer | Result) -> Size:
    """Elements of a value's flat space. For inputs and results: of the tensor, were it dense."""
    if isinstance(value, (Input, Result, Buffer)):
        return product(value.shape)
    return product(value.kept if isinstance(value, Reduce) else value.domain)


def reads(node: Compute) -> Iterator[Load | Gather]:
    """What its expression loads, in order of evaluation."""
    for part in walk(node.expression):
        if isinstance(part, (Load, Gather)):
            yield part
    if isinstance(node, Store):
        for term in node.terms:
            for part in walk(term.index):
                if isinstance(part, (Load, Gather)):
                    yield part
