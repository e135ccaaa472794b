"""Padding with the tensor's own elements: one store per border or column of a narrow one, and one
for the tensor.

A border is a flipped slice or a repeated element, so nothing computes an index per element. The
corners are borders of two or three dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from compiler.loops.dtypes import compute_dtype
from compiler.loops.layouts import Shape, expand, flip
from compiler.loops.sizes import Size, add, subtract
from compiler.lowering.builder import Builder, reading_order, storage_order
from compiler.lowering.dimensions import with_size
from compiler.lowering.joins import place
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Meta, Tensor
from compiler.lowering.views import piece

Border = Callable[[Builder, Tensor, int, int, bool], Tensor]
"""`(builder, tensor, dim, count, end)` -> what lies beyond one end of a dimension."""
Part = tuple[Size, Size, bool | None]
"""What a padded dimension consists of: (start, count, at which end), with None for the middle."""

NARROW = 4
"""Columns of a border up to which single elements take less time than a part of a vector."""


@lowers("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(builder: Builder, tensor: Tensor, pads: Sequence[Size]) -> Tensor:
    return _padded(builder, tensor, pads, _mirrored)


@lowers("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(builder: Builder, tensor: Tensor, pads: Sequence[Size]) -> Tensor:
    return _padded(builder, tensor, pads, _repeated)


def _mirrored(builder: Builder, tensor: Tensor, dim: int, count: int, end: bool) -> Tensor:
    slab = _seen(builder, tensor, dim, count, end)
    return builder.view(slab, flip(slab.shape, (dim,)), slab.shape)


def _repeated(builder: Builder, tensor: Tensor, dim: int, count: int, end: bool) -> Tensor:
    start = subtract(tensor.shape[dim], 1) if end else 0
    slab = piece(builder, tensor, dim, start, 1)
    shape = with_size(slab.shape, dim, count)
    return builder.view(slab, expand(slab.shape, shape), shape)


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


def _padded(builder: Builder, tensor: Tensor, pads: Sequence[Size], border: Border) -> Tensor:
    rank = len(tensor.shape)
    parts = _parts(tensor.shape, pads)
    whole = builder.buffer()
    if 0 in builder.meta.shape:
        return whole
    # rows that are read across memory are transposed, which a loop with more stores is not
    orders = storage_order(builder.meta.shape, builder.meta.strides), reading_order(tensor)
    rows = builder.on_cpu and all(order[-1] == rank - 1 for order in orders)
    for chosen in product(*parts):
        target, source = whole, tensor
        for i, (start, count, end) in enumerate(chosen):
            dim = rank - 1 - i
            target = piece(builder, target, dim, start, count)
            if end is not None:
                assert isinstance(count, int)
                source = border(builder, source, dim, count, end)
        for part, piece_of in _columns(builder, target, source, chosen[0], rows):
            place(builder, part, piece_of)
    return whole


def _columns(
    builder: Builder, target: Tensor, source: Tensor, part: Part, rows: bool
) -> list[tuple[Tensor, Tensor]]:
    """A narrow border as a store for each column if it is at the ends of `rows`: these stores
    become part of the loop that writes the rows, which then goes through memory once."""
    _, count, end = part
    last = len(target.shape) - 1
    if end is None or not isinstance(count, int) or count > NARROW or not rows:
        return [(target, source)]

    def column(tensor: Tensor, place: int) -> Tensor:
        return builder.reshape(piece(builder, tensor, last, place, 1), tensor.shape[:last])

    return [(column(target, place), column(source, place)) for place in range(count)]
