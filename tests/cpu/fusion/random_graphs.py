"""Random value graphs on small shapes: maps, reductions, scans, views, stores, calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tcw.compiler.loops.expressions import Const, Expression, Gather, IndexTerm, Iota, Load, Op
from tcw.compiler.loops.graph import (
    Buffer,
    Call,
    Graph,
    Input,
    Map,
    Operand,
    Reduce,
    Result,
    Scan,
    Store,
)
from tcw.compiler.loops.layouts import (
    Layout,
    Shape,
    View,
    compose_views,
    expand,
    flip,
    permute,
    row_major,
    slice_dimension,
)
from tcw.compiler.loops.sizes import product

D = "float64"
SHAPES: list[Shape] = [
    (4, 6),
    (6, 4),
    (2, 3, 4),
    (24,),
    (4, 1),
    (4,),
    (6,),
    (4, 6, 2),
    (1,),
    (2, 16),
]


@dataclass
class Tensor:
    value: str
    view: View
    shape: Shape


@dataclass
class Builder:
    draw: st.DrawFn
    graph: Graph = field(default_factory=lambda: Graph("0/0/random"))
    tensors: list[Tensor] = field(default_factory=list)
    dense: list[str] = field(default_factory=list)
    """Values of which calls and outputs may take the memory."""
    mutable: list[Input] = field(default_factory=list)
    count: int = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def input(self, shape: Shape) -> None:
        node = Input(self.name("x"), D, shape, row_major(shape).strides)
        self.graph.nodes.append(node)
        self.graph.parameters.append(node.name)
        self.tensors.append(Tensor(node.name, (), shape))
        self.mutable.append(node)

    def pick(self) -> Tensor:
        """Late tensors more often than early ones."""
        back = min(self.draw(st.integers(1, 6)), len(self.tensors))
        if self.draw(st.booleans()):
            back = self.draw(st.integers(1, len(self.tensors)))
        return self.viewed(self.tensors[-back])

    def viewed(self, tensor: Tensor) -> Tensor:
        kind = self.draw(
            st.sampled_from(["none", "none", "none", "permute", "slice", "flip", "reshape"])
        )
        shape = tensor.shape
        if kind == "permute":
            order = self.draw(st.permutations(range(len(shape))))
            made = tuple(shape[d] for d in order)
            return Tensor(tensor.value, compose_views(tensor.view, (permute(shape, order),)), made)
        if kind == "slice":
            dim = self.draw(st.integers(0, len(shape) - 1))
            size = shape[dim]
            assert isinstance(size, int)
            start = self.draw(st.integers(0, size - 1))
            step = self.draw(st.integers(1, 2))
            left = (size - start + step - 1) // step
            layout = slice_dimension(shape, dim, start, left, step)
            made = (*shape[:dim], left, *shape[dim + 1 :])
            return Tensor(tensor.value, compose_views(tensor.view, (layout,)), made)
        if kind == "flip":
            dim = self.draw(st.integers(0, len(shape) - 1))
            return Tensor(tensor.value, compose_views(tensor.view, (flip(shape, [dim]),)), shape)
        if kind == "reshape":
            same = [s for s in SHAPES if product(s) == product(shape)]
            if same:
                return Tensor(tensor.value, tensor.view, self.draw(st.sampled_from(same)))
        return tensor

    def load(self, tensor: Tensor, shape: Shape, order: list[int] | None = None) -> Expression:
        view = tensor.view
        if tensor.shape != shape:
            view = compose_views(view, (expand(tensor.shape, shape),))
        if order is not None:
            view = compose_views(view, (permute(shape, order),))
        return Load(tensor.value, view, D)

    def mates(self, shape: Shape) -> list[Tensor]:
        return [t for t in self.tensors if broadcasts(t.shape, shape)]

    def expression(self, first: Tensor, shape: Shape, order: list[int]) -> Expression:
        one = self.load(first, shape, order)
        kind = self.draw(st.sampled_from(["tanh", "neg", "add", "mul", "sub", "maximum", "iota"]))
        if kind in ("tanh", "neg"):
            return Op(kind, (one,), D)
        if kind == "iota":
            view = compose_views((), (permute(shape, order),))
            return Op("add", (one, Op("convert", (Iota(view),), D)), D)
        two: Expression = Const(0.5, D)
        mates = self.mates(shape)
        if mates and self.draw(st.integers(0, 4)):
            two = self.load(self.draw(st.sampled_from(mates[-8:])), shape, order)
        return Op(kind, (one, two), D)

    def map(self) -> None:
        first = self.pick()
        shape = first.shape
        if self.draw(st.integers(0, 4)) == 0:
            wider = [s for s in SHAPES if broadcasts(shape, s)]
            if wider:
                shape = self.draw(st.sampled_from(wider))
        order = list(range(len(shape)))
        if self.draw(st.integers(0, 3)) == 0:
            order = list(self.draw(st.permutations(order)))
        name = self.name("m")
        domain = tuple(shape[d] for d in order)
        self.graph.nodes.append(Map(name, D, domain, self.expression(first, shape, order), (name,)))
        self.keep(name, shape, order)

    def keep(self, name: str, shape: Shape, order: list[int]) -> None:
        strides = row_major(tuple(shape[d] for d in order)).strides
        placed = [strides[order.index(d)] for d in range(len(shape))]
        view = compose_views((), (Layout(shape, tuple(placed)),))
        self.tensors.append(Tensor(name, view, shape))
        self.dense.append(name)

    def reduce(self) -> None:
        first = self.pick()
        shape = first.shape
        reduced = tuple(self.draw(st.booleans()) for _ in shape)
        if not any(reduced):
            reduced = (*reduced[:-1], True)
        op = self.draw(st.sampled_from(["sum", "sum", "max", "argmax"]))
        name = self.name("r")
        dtype = "int64" if op == "argmax" else D
        order = list(range(len(shape)))
        value = self.expression(first, shape, order)
        node = Reduce(name, dtype, op, shape, reduced, value, (name,))
        self.graph.nodes.append(node)
        if op == "argmax":
            self.graph.outputs.append(whole(name, node.kept, dtype))
            return
        kept = [d for d in range(len(shape)) if not reduced[d]]
        self.keep(name, node.kept or (1,), list(range(len(kept) or 1)))
        widened = tuple(1 if reduced[d] else shape[d] for d in range(len(shape)))
        self.tensors.append(Tensor(name, (), widened))

    def scan(self) -> None:
        first = self.pick()
        shape = first.shape
        digit = self.draw(st.integers(0, len(shape) - 1))
        name = self.name("s")
        value = self.expression(first, shape, list(range(len(shape))))
        reverse = self.draw(st.booleans())
        self.graph.nodes.append(Scan(name, D, "sum", shape, digit, value, reverse, (name,)))
        self.keep(name, shape, list(range(len(shape))))

    def cat(self) -> None:
        pieces = [self.pick()]
        same = [t for t in self.tensors if t.shape[1:] == pieces[0].shape[1:]]
        pieces += self.draw(st.lists(st.sampled_from(same), max_size=2)) if same else []
        rows = sum(int(str(p.shape[0])) for p in pieces)
        shape = (rows, *pieces[0].shape[1:])
        buffer = self.name("cat")
        self.graph.nodes.append(Buffer(buffer, D, shape))
        start = 0
        for piece in pieces:
            count = int(str(piece.shape[0]))
            layout = slice_dimension(shape, 0, start, count)
            start += count
            name = self.name("piece")
            value = self.load(piece, piece.shape)
            view = compose_views((), (layout,))
            self.graph.nodes.append(Store(name, buffer, D, piece.shape, view, value))
        self.keep(buffer, shape, list(range(len(shape))))

    def scatter(self) -> None:
        first = self.pick()
        buffer = self.name("b")
        self.graph.nodes.append(Buffer(buffer, D, (8,)))
        zero = Const(0.0, D)
        self.graph.nodes.append(Store(self.name("fill"), buffer, D, (8,), (), zero))
        index = Op("remainder", (Iota(()), Const(5, "int64")), "int64")
        term = IndexTerm(index, 8, 1)
        mode = self.draw(st.sampled_from(["set", "add"]))
        stay = (Layout(first.shape, (0,) * len(first.shape)),)
        value = self.load(first, first.shape)
        self.graph.nodes.append(
            Store(self.name("hit"), buffer, D, first.shape, stay, value, (term,), mode)
        )
        self.keep(buffer, (8,), [0])

    def gather(self) -> None:
        first = self.tensors[-1]
        if first.view:
            return
        size = product(first.shape)
        index = Op("remainder", (Iota(()), Const(3, "int64")), "int64")
        name = self.name("g")
        if not isinstance(size, int) or size < 3:
            return
        last = first.shape[-1]
        if self.draw(st.booleans()) and isinstance(last, int) and last >= 3 and size > last:
            shape: Shape = (size // last,)
            gather = Gather(first.value, (Layout(shape, (last,)),), (IndexTerm(index, last, 1),), D)
        else:
            shape = self.draw(st.sampled_from(SHAPES))
            stay = (Layout(shape, (0,) * len(shape)),)
            gather = Gather(first.value, stay, (IndexTerm(index, size, 1),), D)
        self.graph.nodes.append(Map(name, D, shape, gather, (name,)))
        self.keep(name, shape, list(range(len(shape))))

    def mutate(self) -> None:
        target = self.draw(st.sampled_from(self.mutable))
        mates = [t for t in self.tensors if t.shape == target.shape]
        source = self.viewed(self.draw(st.sampled_from(mates))) if mates else self.pick()
        if source.shape != target.shape:
            return
        value = self.expression(source, target.shape, list(range(len(target.shape))))
        self.graph.nodes.append(Store(self.name("copy"), target.name, D, target.shape, (), value))

    def call(self) -> None:
        if not self.dense:
            return
        value = self.draw(st.sampled_from(self.dense[-4:]))
        shape = next(t.shape for t in self.tensors if t.value == value)
        size = product(shape)
        name = self.name("c")
        result = Result(name, D, (size,), (1,))
        operand = Operand(value, D, (size,), (1,))
        self.graph.nodes.append(Call(name, "aten.neg.default", (operand,), (), (result,)))
        self.tensors.append(Tensor(name, (), shape))


def broadcasts(shape: Shape, wanted: Shape) -> bool:
    if len(shape) > len(wanted):
        return False
    tail = wanted[len(wanted) - len(shape) :]
    return all(a in (1, b) for a, b in zip(shape, tail, strict=True))


def whole(name: str, shape: Shape, dtype: str = D) -> Operand:
    return Operand(name, dtype, shape, row_major(shape).strides)


@st.composite
def graphs(draw: st.DrawFn, steps: int = 14) -> Graph:
    """A random graph, with some of its values as outputs."""
    b = Builder(draw)
    for shape in draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)):
        b.input(shape)
    kinds = [b.map] * 6 + [b.reduce] * 3 + [b.scan, b.cat, b.scatter, b.gather, b.mutate, b.call]
    for _ in range(draw(st.integers(1, steps))):
        draw(st.sampled_from(kinds))()
    for name in draw(st.lists(st.sampled_from(b.dense), unique=True)) if b.dense else []:
        shape = next(t.shape for t in b.tensors if t.value == name)
        b.graph.outputs.append(whole(name, (product(shape),)))
    if b.dense:
        name = b.dense[-1]
        shape = next(t.shape for t in b.tensors if t.value == name)
        b.graph.outputs.append(whole(name, (product(shape),)))
    return b.graph
