"""Joins: several tensors side by side in one buffer, with one store per piece."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from itertools import product

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Iota, Load
from tcw.compiler.loops.graph import StoreMode
from tcw.compiler.loops.layouts import Layout, Shape, compose_views, row_major, slice_dimension
from tcw.compiler.loops.sizes import Size, add, at_least, subtract
from tcw.compiler.lowering.builder import Builder, Scalar, logical_strides, storage_order
from tcw.compiler.lowering.copies import as_promised
from tcw.compiler.lowering.dimensions import bound, dimension, position, with_size
from tcw.compiler.lowering.elements import Element, apply, constant, number, size_element, where
from tcw.compiler.lowering.elements import position as index_along
from tcw.compiler.lowering.indexing import read_at
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor
from tcw.compiler.lowering.views import diagonal_layout, piece

SHORT_ROW = 64
"""Elements of a row whose ends cost more than its middle: stores of a constant beside it."""

SHORTEST_ROW = 3
"""Elements of a row from which reading every other row costs less than stores between constants."""


def place(
    builder: Builder, whole: Tensor, source: Tensor | Scalar, *, mode: StoreMode = "set"
) -> None:
    """Fill `whole`, a view of a buffer, or add to it, in the buffer's memory order."""
    order = storage_order(builder.meta.shape, builder.meta.strides)
    if len(order) != len(whole.shape):
        order = tuple(range(len(whole.shape)))
    value = source if isinstance(source, Tensor) else number(source, whole.dtype).expression
    builder.store(whole, value, order=order, mode=mode)


@lowers("cat", "concat")
def cat(builder: Builder, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    meta = builder.meta
    dim = dimension(dim, len(meta.shape))
    pieces = [t for t in tensors if 0 not in t.shape]
    if len(pieces) == 1:
        return as_promised(builder, pieces[0])
    whole = builder.buffer()
    start: Size = 0
    for tensor in pieces:
        place(builder, piece(builder, whole, dim, start, tensor.shape[dim]), tensor)
        start = add(start, tensor.shape[dim])
    return whole


@lowers("constant_pad_nd")
def constant_pad(
    builder: Builder, tensor: Tensor, pads: Sequence[Size], value: Scalar = 0
) -> Tensor:
    """The tensor in the middle, a slab of the constant before and after it in each dimension."""
    meta = builder.meta
    rank = len(meta.shape)
    before: list[Size] = [0] * rank
    after: list[Size] = [0] * rank
    for i in range(len(pads) // 2):
        dim = rank - 1 - i
        low, high = pads[2 * i], pads[2 * i + 1]
        if isinstance(low, int) and isinstance(high, int):
            cut = max(0, -low)
            left = add(tensor.shape[dim], -cut - max(0, -high))
            if cut or high < 0:
                tensor = piece(builder, tensor, dim, cut, left)
            low, high = max(0, low), max(0, high)
        elif not (at_least(low, 0) and at_least(high, 0)):
            raise NoLowering("a pad of uncertain sign")
        before[dim], after[dim] = low, high
    if all(size == 0 for size in (*before, *after)):
        return as_promised(builder, tensor)
    if 0 in meta.shape:
        return builder.buffer()
    padded = [d for d in range(rank) if (before[d], after[d]) != (0, 0)]
    starts = {d: start for d in padded if isinstance(start := before[d], int)}
    one_loop = builder.read_in_place() or _short_rows(tensor, meta, padded)
    if one_loop and len(starts) == len(padded):
        return _surrounded(builder, tensor, starts, value)
    whole = builder.buffer()
    inner = whole
    for dim in range(rank):
        size = inner.shape[dim]
        if before[dim] != 0:
            place(builder, piece(builder, inner, dim, 0, before[dim]), value)
        if after[dim] != 0:
            start = subtract(size, after[dim])
            place(builder, piece(builder, inner, dim, start, after[dim]), value)
        left = subtract(subtract(size, before[dim]), after[dim])
        inner = piece(builder, inner, dim, before[dim], left)
    place(builder, inner, tensor)
    return whole


def _short_rows(tensor: Tensor, meta: Meta, padded: Collection[int]) -> bool:
    """Whether rows of a padded tensor are so short that a pass over all of it costs less than a
    cache line for each end of a row. Rows that lie across the tensor's memory are gathered in such
    a pass, and transposed in tiles without their ends."""
    innermost = storage_order(meta.shape, meta.strides)[-1]
    size = meta.shape[innermost]
    if innermost not in padded or not isinstance(size, int) or size > SHORT_ROW:
        return False
    strides = logical_strides(tensor)
    return strides is None or strides[innermost] == 1 or tensor.shape[innermost] == 1


@lowers("roll")
def roll(
    builder: Builder, tensor: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()
) -> Tensor:
    """Two pieces of each rolled dimension, the tail first: a store for each of their products."""
    if not dims:
        flat = builder.reshape(tensor, (tensor.size,))
        rolled = flat if 0 in tensor.shape else _roll(builder, flat, {0: shifts[0]})
        return builder.reshape(rolled, tensor.shape)
    if 0 in tensor.shape:
        return tensor
    total: dict[int, int] = {}
    for shift, dim in zip(shifts, dims, strict=True):
        along = dimension(dim, len(tensor.shape))
        total[along] = total.get(along, 0) + shift
    return _roll(builder, tensor, total)


def _roll(builder: Builder, tensor: Tensor, shifts: Mapping[int, Size]) -> Tensor:
    parts: list[list[tuple[int, int, int, int]]] = []
    for dim, shift in shifts.items():
        size = tensor.shape[dim]
        if not isinstance(shift, int) or not isinstance(size, int):
            raise NoLowering("a roll by a symbolic size")
        if tail := shift % size:
            parts.append([(dim, size - tail, tail, 0), (dim, 0, size - tail, tail)])
    if not parts:
        return tensor
    whole = builder.buffer(builder.contiguous(tensor.shape, tensor.dtype))
    for chosen in product(*parts):
        source, target = tensor, whole
        for dim, start, count, to in chosen:
            source = piece(builder, source, dim, start, count)
            target = piece(builder, target, dim, to, count)
        builder.store(target, source)
    return whole


@lowers("slice_scatter")
def slice_scatter(
    builder: Builder,
    tensor: Tensor,
    source: Tensor,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
) -> Tensor:
    dim = dimension(dim, len(tensor.shape))
    size = tensor.shape[dim]
    first = bound(start, size, 0)
    count = source.shape[dim]
    if step == 1:
        return _replaced(builder, tensor, source, dim, first, count)
    filling = builder.constant_of(tensor)
    if filling is not None and isinstance(first, int) and _in_rows(builder, dim, step, count):
        return _surrounded(builder, source, {dim: first}, filling, step)
    whole = builder.copied_to_write(tensor)
    layout = slice_dimension(tensor.shape, dim, first, count, step)
    place(builder, builder.view(whole, layout, source.shape), source)
    return whole


def _in_rows(builder: Builder, dim: int, step: int, count: Size) -> bool:
    """Whether every element can be read in place: each index of the dimension has whole rows from
    the source or none, the rows are not too short, and steps divide the dimension."""
    meta = builder.meta
    size = meta.shape[dim]
    if not isinstance(size, int) or size == 0 or size % step or count == 0:
        return False
    order = storage_order(meta.shape, meta.strides)
    row = 1
    for inner in order[order.index(dim) + 1 :]:
        length = meta.shape[inner]
        row *= length if isinstance(length, int) else SHORTEST_ROW
    return row >= SHORTEST_ROW and builder.read_in_place()


@lowers("select_scatter")
def select_scatter(
    builder: Builder, tensor: Tensor, source: Tensor, dim: int, index: Size
) -> Tensor:
    dim = dimension(dim, len(tensor.shape))
    first = position(index, tensor.shape[dim])
    row = builder.reshape(source, with_size(tensor.shape, dim, 1))
    return _replaced(builder, tensor, row, dim, first, 1)


def _replaced(
    builder: Builder, tensor: Tensor, source: Tensor, dim: int, start: Size, count: Size
) -> Tensor:
    """The tensor with `count` elements of a dimension from the source, as three pieces, or as one
    if nothing has set the others."""
    if 0 in source.shape:
        return as_promised(builder, tensor)
    if tensor.value == builder.in_place:
        whole = builder.copied_to_write(tensor)
        place(builder, piece(builder, whole, dim, start, count), source)
        return whole
    filling = builder.constant_of(tensor)
    if filling is not None and builder.read_in_place() and isinstance(start, int):
        return _surrounded(builder, source, {dim: start}, filling)
    end = add(start, count)
    cover = builder.constant_of(source)
    if cover is not None and builder.read_in_place():
        return _covered(builder, tensor, dim, (start, end), cover)
    whole = builder.buffer()
    for low, length, given in (
        (0, start, None),
        (start, count, source),
        (end, subtract(tensor.shape[dim], end), None),
    ):
        if length == 0 or (given is None and tensor.value in builder.unset):
            continue
        part = given or piece(builder, tensor, dim, low, length)
        place(builder, piece(builder, whole, dim, low, length), part)
    return whole


def _surrounded(
    builder: Builder, tensor: Tensor, starts: Mapping[int, int], value: Scalar, step: int = 1
) -> Tensor:
    """The tensor from these indices on, in steps, and a number around and between, as one read for
    each element: what reads the elements one by one can share the loop, which pieces of a buffer
    cannot. Steps divide the dimensions."""
    shape = builder.meta.shape
    order = storage_order(shape, builder.meta.strides)
    indices = {dim: _stepped(shape, order, dim, start, step) for dim, start in starts.items()}
    otherwise = constant(value, tensor.dtype).number
    read = read_at(builder.in_memory(tensor), shape, order, indices, otherwise)
    return builder.map(read.expression)


def _stepped(shape: Shape, order: Sequence[int], dim: int, start: int, step: int) -> Element:
    """(index - start) / step along a dimension; out of range where the step does not divide."""
    if step == 1:
        return index_along(shape, dim, order, start=-start)
    size = shape[dim]
    assert isinstance(size, int)
    at = order.index(dim)
    before, after = (tuple(shape[d] for d in part) for part in (order[:at], order[at + 1 :]))
    digits = (*before, size // step, step, *after)
    strides = (*[0] * len(before), 1, size, *[0] * len(after))
    quotient, rest = divmod(start, step)
    return Element(Iota((Layout(digits, strides, -quotient - rest * size),)))


def _covered(
    builder: Builder, tensor: Tensor, dim: int, span: tuple[Size, Size], value: Scalar
) -> Tensor:
    """The tensor with a number at these indices of a dimension, which is chosen for each element:
    what reads the elements one by one can share the loop."""
    meta = builder.meta
    order = storage_order(meta.shape, meta.strides)
    at, inside = index_along(meta.shape, dim, order), []
    if span[0] != 0:
        inside.append(apply("ge", at, size_element(span[0])))
    if span[1] != meta.shape[dim] or not inside:
        inside.append(apply("lt", at, size_element(span[1])))
    wide = compute_dtype(meta.dtype)
    old = Element(builder.load(tensor, meta.shape, order)).to(wide)
    new = where(reduce(lambda one, other: one & other, inside), number(value, wide), old)
    return builder.map(new.to(meta.dtype).expression)


@lowers("diagonal_scatter")
def diagonal_scatter(
    builder: Builder, tensor: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    filling = builder.constant_of(tensor)
    one_loop = not builder.on_cpu or builder.read_in_place()
    if filling is not None and offset == 0 and 0 not in source.shape and one_loop:
        return _on_diagonal(builder, source, dim1, dim2, filling)
    whole = builder.copied_to_write(tensor)
    if 0 not in source.shape:
        layout = diagonal_layout(tensor, offset, dim1, dim2, source.shape[-1])
        builder.store(builder.view(whole, layout, source.shape), source)
    return whole


def _on_diagonal(builder: Builder, source: Tensor, dim1: int, dim2: int, value: Scalar) -> Tensor:
    """The source on the main diagonal and a number beside it, which is chosen for each element:
    what reads the elements one by one can share the loop."""
    meta = builder.meta
    one, two = (dimension(dim, len(meta.shape)) for dim in (dim1, dim2))
    along = one if meta.shape[one] == source.shape[-1] else two  # no longer than the diagonal
    order = storage_order(meta.shape, meta.strides)
    others = [d for d in range(len(meta.shape)) if d not in (one, two)]
    strides = dict(zip((*others, along), row_major(source.shape).strides, strict=True))
    layout = Layout(tuple(meta.shape[d] for d in order), tuple(strides.get(d, 0) for d in order))
    wide = compute_dtype(meta.dtype)
    element = Element(Load(source.value, compose_views(source.view, (layout,)), source.dtype))
    same = apply("eq", *(index_along(meta.shape, dim, order) for dim in (one, two)))
    chosen = where(same, element.to(wide), number(value, wide))
    return builder.map(chosen.to(meta.dtype).expression)


@lowers("as_strided_scatter")
def as_strided_scatter(
    builder: Builder,
    tensor: Tensor,
    source: Tensor,
    size: Sequence[Size],
    stride: Sequence[Size],
    storage_offset: Size | None = None,
) -> Tensor:
    """Write into a copy of the memory. Lowered only if the tensor covers its whole storage."""
    meta = builder.meta
    whole = builder.buffer()
    in_place = logical_strides(whole) == meta.strides and logical_strides(tensor) == meta.strides
    if tensor.value in builder.offsets or not in_place or (tensor.view and tensor.view[0].offset):
        raise NoLowering("the storage is more than the tensor")
    place(builder, whole, tensor)
    layout = Layout(source.shape, tuple(stride), storage_offset or 0)
    if 0 not in source.shape:
        builder.store(whole, source, view=(layout,), shape=source.shape)
    return whole
