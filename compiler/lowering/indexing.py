"""Index tensors: the memory addresses that they select, by eager's rules, and gathers.

Indices are checked and wrapped as in eager. The number of elements that a mask selects depends on
the data, so masks become calls, except for filling a mask with one number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch._subclasses.fake_tensor import unset_fake_temporarily

from tcw.compiler.loops.expressions import (
    Const,
    Expression,
    Gather,
    IndexTerm,
    Iota,
    Load,
    Op,
    convert,
    walk,
)
from tcw.compiler.loops.graph import Graph, Map, Operand
from tcw.compiler.loops.interpreter import run_graph
from tcw.compiler.loops.layouts import Layout, Shape, compose_views, permute
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.dimensions import dimension
from tcw.compiler.lowering.elements import Element
from tcw.compiler.lowering.promotion import Number
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor

Indices = Sequence[Tensor | None]


INDEX, GATHER, TARGET = "index", "gather", "target"
"""The operation whose error wording is used (`IndexTerm.says`)."""
MOST = 1 << 14
"""Elements of an index that is evaluated."""
REPEATS = (2, 4)
STEPS = (1, 2, 3, 4)


def base(memory: Operand, shape: Shape, dims: Mapping[int, int]) -> Layout:
    """Row-major index of `shape` -> the memory's index.

    `dims` maps dimensions of the memory to those of `shape`; the others stay at index 0.
    """
    strides: list[Size] = [0] * len(shape)
    for source, dim in dims.items():
        strides[dim] = memory.strides[source]
    return Layout(shape, tuple(strides), memory.offset)


def read_at(
    memory: Operand,
    shape: Shape,
    order: Sequence[int],
    indices: Mapping[int, Element],
    otherwise: Number | None = None,
) -> Element:
    """The element at computed indices along some dimensions of the memory, and at the position in
    the domain `shape` along the others; `otherwise` beyond the ends of a dimension."""
    still = {d: d for d in range(len(memory.shape)) if d not in indices}
    view = compose_views((base(memory, shape, still),), (permute(shape, order),))
    terms = tuple(unchecked(memory, dim, index) for dim, index in indices.items())
    return Element(Gather(memory.value, view, terms, memory.dtype, otherwise))


def unchecked(memory: Operand, dim: int, index: Element) -> IndexTerm:
    """An index along a dimension, which may lie outside of it."""
    size, stride = memory.shape[dim], memory.strides[dim]
    return IndexTerm(index.expression, size, stride, wraps=False, checked=False)


def index_terms(
    builder: Builder,
    memory: Operand,
    indices: Mapping[int, Tensor],
    shape: Shape,
    order: Sequence[int],
    *,
    wraps: bool,
    says: str = "",
) -> list[IndexTerm]:
    """Indices, broadcast to the domain `shape`, along dimensions of the memory."""
    terms = []
    for place, (dim, index) in enumerate(indices.items()):
        if index.dtype not in ("int64", "int32", "int16", "int8", "uint8"):
            raise NoLowering(f"an index of {index.dtype}")
        loaded = convert(builder.load(index, shape, order), "int64")
        size, stride = memory.shape[dim], memory.strides[dim]
        named = place if says == INDEX else dim
        terms.append(IndexTerm(loaded, size, stride, wraps, says=says, dim=named))
    return terms


def positions(
    builder: Builder, memory: Operand, dim: int, index: Tensor, shape: Shape, order: Sequence[int]
) -> IndexTerm | None:
    """An index that depends on the positions alone, and is in range; None for others."""
    size = memory.shape[dim]
    wide = [d for d, extent in enumerate(index.shape) if extent != 1]
    if len(wide) != 1 or not isinstance(size, int) or index.dtype != "int64":
        return None
    table = known(builder, index)
    if table is None or min(table) < 0 or max(table) >= size:
        return None
    along = len(shape) - len(index.shape) + wide[0]
    if shape[along] != len(table):
        return None
    digits = tuple(shape[d] for d in order)
    found = formula(table, digits, list(order).index(along))
    if found is None:
        found = builder.load(index, shape, order)
    return unchecked(memory, dim, Element(found))


@dataclass(frozen=True, slots=True)
class Advanced:
    """How the dimensions of an advanced indexing arise."""

    shape: Shape
    """The shape that is read or written: the broadcast indices and the unindexed dimensions."""
    dims: dict[int, int]
    """Each dimension without an index -> its position in `shape`."""
    indices: dict[int, Tensor]
    """Each indexed dimension -> its index, broadcastable to `shape`."""


def advanced(builder: Builder, tensor: Tensor, indices: Indices) -> Advanced:
    """NumPy's rules: adjacent indices stay in place, all others move to the front.

    As in aten/src/ATen/native/TensorAdvancedIndexingUtils.h. Raises `NoLowering` for masks.
    """
    given = {d: index for d, index in enumerate(indices) if index is not None}
    if any(index.dtype in ("bool", "uint8") for index in given.values()):
        raise NoLowering("a mask selects a data-dependent number of elements")
    rank = max((len(index.shape) for index in given.values()), default=0)
    common: list[Size] = [1] * rank
    for index in given.values():
        for i, size in enumerate(index.shape[::-1]):
            if size != 1:
                common[rank - 1 - i] = size
    left = [d for d in range(len(tensor.shape)) if d not in given]
    places = sorted(given)
    together = places == list(range(places[0], places[-1] + 1)) if places else True
    first = places[0] if places and together else 0
    before = [d for d in left if d < first]
    after = [d for d in left if d >= first]
    shape = (*(tensor.shape[d] for d in before), *common, *(tensor.shape[d] for d in after))
    dims = {d: i for i, d in enumerate(before)}
    dims.update({d: len(before) + rank + i for i, d in enumerate(after)})
    spread = {
        d: builder.reshape(index, (*index.shape, *(1 for _ in after))) for d, index in given.items()
    }
    return Advanced(shape, dims, spread)


def known(builder: Builder, index: Tensor) -> list[int] | None:
    """The indices of a tensor that depends on nothing, such as those of a resampling, which torch
    computes from the positions alone; None for any other."""
    size = index.size
    if not isinstance(size, int) or not 2 <= size <= MOST or index.view:
        return None
    maps = {node.name: node for node in builder.graph.nodes if isinstance(node, Map)}
    needed: dict[str, Map] = {}
    pending = [index.value]
    while pending:
        node = maps.get(pending.pop())
        if node is None or any(not isinstance(s, int) or s > MOST for s in node.domain):
            return None
        if node.name not in needed:
            needed[node.name] = node
            for part in walk(node.expression):
                if isinstance(part, Load):
                    pending.append(part.value)
                elif not isinstance(part, (Op, Const, Iota)):
                    return None
    nodes = [node for node in builder.graph.nodes if node.name in needed]
    whole = Operand(index.value, index.dtype, (size,), (1,))
    with unset_fake_temporarily():  # capture's, in which tensors have no elements
        (found,) = run_graph(Graph("index", list(nodes), outputs=[whole]), [])
    return [int(number) for number in found.tolist()]


def formula(table: Sequence[int], shape: Shape, place: int) -> Expression | None:
    """The expression that equals a table, for a domain of this shape along whose digit `place` it
    varies. None if there is none."""
    least, greatest = min(table), max(table)
    for step, repeat, start in _candidates(table):
        if not all(
            found == min(max((step * x + start) // repeat, least), greatest)
            for x, found in enumerate(table)
        ):
            continue
        strides = tuple(step if digit == place else 0 for digit in range(len(shape)))
        index: Expression = Iota((Layout(shape, strides, start),))
        if repeat > 1:
            index = Op("floor_divide", (index, Const(repeat, "int64")), "int64")
        ends = start // repeat, (step * (len(table) - 1) + start) // repeat
        if ends[0] < least or ends[1] > greatest:
            index = Op("maximum", (index, Const(least, "int64")), "int64")
            index = Op("minimum", (index, Const(greatest, "int64")), "int64")
        return index
    return None


def _candidates(table: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(step, repeat, start) of formulas that equal the table in the middle."""
    x = (len(table) - 1) // 2
    step = table[x + 1] - table[x]
    if step in STEPS:
        yield step, 1, table[x] - step * x
    for repeat in REPEATS:
        for rest in range(repeat):
            yield 1, repeat, table[x] * repeat - x + rest


def gathered(
    builder: Builder,
    source: Tensor,
    dims: Mapping[int, int],
    indices: Mapping[int, Tensor],
    *,
    wraps: bool,
    says: str = "",
) -> Tensor:
    """A map over the output that reads `source`.

    Each dimension of `source` follows an output dimension (`dims`), or an index tensor that
    broadcasts to the output (`indices`).
    """
    meta = builder.meta
    if 0 in meta.shape:
        return builder.buffer()
    if any(source.shape[dim] == 0 for dim in indices):
        raise NoLowering("an index into no elements")
    memory = builder.in_memory(source)
    order = storage_order(meta.shape, meta.strides)
    layout = base(memory, meta.shape, dims)
    view = compose_views((layout,), (permute(meta.shape, order),))
    given = index_terms(builder, memory, indices, meta.shape, order, wraps=wraps, says=says)
    terms = tuple(
        positions(builder, memory, dim, index, meta.shape, order) or term
        for (dim, index), term in zip(indices.items(), given, strict=True)
    )
    read = Gather(memory.value, view, terms, source.dtype)
    return builder.map(convert(read, meta.dtype))


@lowers("embedding")
def embedding(
    builder: Builder,
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    index = builder.reshape(indices, (*indices.shape, 1))
    return gathered(builder, weight, {1: len(indices.shape)}, {0: index}, wraps=False)


@lowers("gather")
def gather(
    builder: Builder, tensor: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False
) -> Tensor:
    says = TARGET if str(builder.taken_from).startswith("aten.nll_loss") else GATHER
    if not tensor.shape or not index.shape:
        tensor = tensor if tensor.shape else builder.reshape(tensor, (1,))
        return gathered(builder, tensor, {}, {0: index}, wraps=False, says=says)
    dim = dimension(dim, len(tensor.shape))
    dims = {d: d for d in range(len(tensor.shape)) if d != dim}
    return gathered(builder, tensor, dims, {dim: index}, wraps=False, says=says)


@lowers("index.Tensor")
def index(builder: Builder, tensor: Tensor, indices: Indices) -> Tensor:
    found = advanced(builder, tensor, indices)
    # ATen decomposes index_select into this operation, and words its errors as for an embedding
    says = "" if str(builder.taken_from).startswith("aten.index_select") else INDEX
    return gathered(builder, tensor, found.dims, found.indices, wraps=True, says=says)
