"""Padding with the tensor's own elements: one store per border or column of a narrow one, and one
for the tensor.

A border is a flipped slice or a repeated element, so nothing computes an index per element. The
corners are borders of two or three dimensions. On the CPU, what lies beyond an image's first and
last row is found by an index per row, and all rows are written in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.layouts import Shape, expand, flip
from tcw.compiler.loops.sizes import Size, add, subtract
from tcw.compiler.lowering.builder import Builder, reading_order, storage_order
from tcw.compiler.lowering.dimensions import with_size
from tcw.compiler.lowering.elements import Element, larger, number, position, size_element, smaller
from tcw.compiler.lowering.indexing import read_at
from tcw.compiler.lowering.joins import place
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor
from tcw.compiler.lowering.views import piece

Border = Callable[[Builder, Tensor, int, int, bool], Tensor]
"""`(builder, tensor, dim, count, end)` -> what lies beyond one end of a dimension."""
Row = Callable[[Element, Element], Element]
"""`(index, last)` -> the row that is seen at an index, which may lie before 0 or beyond `last`."""
Part = tuple[Size, Size, bool | None]
"""What a padded dimension consists of: (start, count, at which end), with None for the middle."""

NARROW = 4
"""Columns of a border up to which single elements take less time than a part of a vector."""


@lowers("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(builder: Builder, tensor: Tensor, pads: Sequence[Size]) -> Tensor:
    return _padded(builder, tensor, pads, _mirrored, _mirrored_row)


@lowers("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(builder: Builder, tensor: Tensor, pads: Sequence[Size]) -> Tensor:
    return _padded(builder, tensor, pads, _repeated, _repeated_row)


def _mirrored(builder: Builder, tensor: Tensor, dim: int, count: int, end: bool) -> Tensor:
    slab = _seen(builder, tensor, dim, count, end)
    return builder.view(slab, flip(slab.shape, (dim,)), slab.shape)


def _repeated(builder: Builder, tensor: Tensor, dim: int, count: int, end: bool) -> Tensor:
    start = subtract(tensor.shape[dim], 1) if end else 0
    slab = piece(builder, tensor, dim, start, 1)
    shape = with_size(slab.shape, dim, count)
    return builder.view(slab, expand(slab.shape, shape), shape)


def _mirrored_row(index: Element, last: Element) -> Element:
    return last - abs(last - abs(index))


def _repeated_row(index: Element, last: Element) -> Element:
    return smaller(larger(index, number(0, "int64")), last)


@lowers("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward")
def reflection_pad_backward(
    builder: Builder, grad: Tensor, tensor: Tensor, pads: Sequence[Size]
) -> Tensor:
    """The middle, and each border added, flipped, to the slice of which it is the mirror image."""
    meta = builder.meta
    parts = _parts(tensor.shape, pads)
    wide = compute_dtype(meta.dtype)
    whole = builder.buffer(Meta(meta.shape, meta.strides, wide))
    if 0 in meta.shape:
        return builder.buffer() if wide != meta.dtype else whole
    rank = len(meta.shape)
    # the middle first, which is in the place of the first part of every dimension
    for chosen in product(*parts):
        target, source = whole, grad
        for i, (start, count, end) in enumerate(chosen):
            dim = rank - 1 - i
            source = piece(builder, source, dim, start, count)
            if end is not None:
                assert isinstance(count, int)
                source = builder.view(source, flip(source.shape, (dim,)), source.shape)
                target = _seen(builder, target, dim, count, end)
        middle = all(end is None for _, _, end in chosen)
        place(builder, target, source, mode="set" if middle else "add")
    return whole if wide == meta.dtype else builder.copy(whole, meta)


def _seen(builder: Builder, tensor: Tensor, dim: int, count: int, end: bool) -> Tensor:
    """The slice of which a border of `count` is the mirror image."""
    start = subtract(tensor.shape[dim], 1 + count) if end else 1
    return piece(builder, tensor, dim, start, count)


def _parts(shape: Shape, pads: Sequence[Size]) -> list[list[Part]]:
    """The parts of each padded dimension, the last one first; of each, the middle first."""
    rank = len(shape)
    parts: list[list[Part]] = []
    for i in range(len(pads) // 2):
        size, low, high = shape[rank - 1 - i], pads[2 * i], pads[2 * i + 1]
        if not isinstance(low, int) or not isinstance(high, int) or low < 0 or high < 0:
            raise NoLowering("a pad that is negative or unknown")
        every = ((low, size, None), (0, low, False), (add(size, low), high, True))
        parts.append([part for part in every if part[1] != 0])
    return parts


def _padded(
    builder: Builder, tensor: Tensor, pads: Sequence[Size], border: Border, row: Row
) -> Tensor:
    rank = len(tensor.shape)
    parts = _parts(tensor.shape, pads)
    whole = builder.buffer()
    if 0 in builder.meta.shape:
        return whole
    # rows that are read across memory are transposed, which a loop with more stores is not
    orders = storage_order(builder.meta.shape, builder.meta.strides), reading_order(tensor)
    if builder.on_cpu and all(order[-1] == rank - 1 for order in orders):
        _padded_rows(builder, whole, tensor, parts, border, row)
        return whole
    for chosen in product(*parts):
        target, source = whole, tensor
        for i, part in enumerate(chosen):
            target, source = _bordered(builder, target, source, rank - 1 - i, part, border)
        place(builder, target, source)
    return whole


def _bordered(
    builder: Builder, target: Tensor, source: Tensor, dim: int, part: Part, border: Border
) -> tuple[Tensor, Tensor]:
    """One part of a dimension, and what is written there."""
    start, count, end = part
    target = piece(builder, target, dim, start, count)
    if end is None:
        return target, source
    assert isinstance(count, int)
    return target, border(builder, source, dim, count, end)


def _padded_rows(
    builder: Builder,
    whole: Tensor,
    tensor: Tensor,
    parts: Sequence[Sequence[Part]],
    border: Border,
    row: Row,
) -> None:
    """The middle and the borders of all rows, which are read where their index says."""
    last = len(tensor.shape) - 1
    before: dict[int, int] = {}
    for i, every in enumerate(parts[1:], 1):
        if len(every) > 1:
            start = every[0][0]
            assert isinstance(start, int)
            before[last - i] = start
    for part in parts[0]:
        target, source = _bordered(builder, whole, tensor, last, part, border)
        for written, seen in _columns(builder, target, source, part):
            _place_rows(builder, written, seen, before, row)


def _place_rows(
    builder: Builder, target: Tensor, source: Tensor, before: Mapping[int, int], row: Row
) -> None:
    """Fill `target` with the source, of which `before` says how many rows lie before the first
    one in a dimension."""
    if not before:
        return place(builder, target, source)
    shape = target.shape
    order = [d for d in storage_order(builder.meta.shape, builder.meta.strides) if d < len(shape)]
    indices = {
        dim: row(position(shape, dim, order) - count, size_element(source.shape[dim], "int64") - 1)
        for dim, count in before.items()
    }
    read = read_at(builder.in_memory(source), shape, order, indices)
    return builder.store(target, read.expression, order=order)


def _columns(
    builder: Builder, target: Tensor, source: Tensor, part: Part
) -> list[tuple[Tensor, Tensor]]:
    """A narrow border at the ends of rows as a store for each column: these stores become part of
    the loop that writes the rows, which then goes through memory once."""
    _, count, end = part
    last = len(target.shape) - 1
    if end is None or not isinstance(count, int) or count > NARROW:
        return [(target, source)]

    def column(tensor: Tensor, place: int) -> Tensor:
        return builder.reshape(piece(builder, tensor, last, place, 1), tensor.shape[:last])

    return [(column(target, place), column(source, place)) for place in range(count)]
