"""`unfold` and `fold` of images, whose windows are columns; sums over windows that overlap, such as
the gradients of `unfold` and of average pooling.

Without padding `unfold` is a view of the image; otherwise one read for each element, zero beyond
the border. Source: aten/src/ATen/native/im2col.h.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Gather, Iota
from tcw.compiler.loops.layouts import Layout, Shape, compose_views, permute, row_major
from tcw.compiler.loops.sizes import Size, add, divide, multiply
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.elements import Element, apply, number, position, where
from tcw.compiler.lowering.indexing import base, read_at, unchecked
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.lowering.windows import MOST, each


@lowers("im2col")
def im2col(
    builder: Builder,
    image: Tensor,
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    kernel, stride = each(kernel, 2), each(stride, 2)
    padding, dilation = each(padding, 2), each(dilation, 2)
    lead = len(image.shape) - 2
    counts = tuple(
        _windows(image.shape[lead + d], kernel[d], dilation[d], padding[d], stride[d])
        for d in (0, 1)
    )
    shape: Shape = (*image.shape[:lead], *kernel, *counts)
    if not any(padding):
        return _view(builder, image, shape, dilation, stride)
    indices = {
        lead + d: _along(shape, lead, d, dilation[d], stride[d], -padding[d]) for d in (0, 1)
    }
    read = read_at(builder.in_memory(image), shape, range(len(shape)), indices, 0)
    return builder.map(read.expression)


def _view(
    builder: Builder, image: Tensor, shape: Shape, dilation: Sequence[int], stride: Sequence[int]
) -> Tensor:
    strides = row_major(image.shape).strides
    steps = (
        *(multiply(width, step) for width, step in zip(strides[-2:], dilation, strict=True)),
        *(multiply(width, step) for width, step in zip(strides[-2:], stride, strict=True)),
    )
    seen = builder.view(image, Layout(shape, (*strides[:-2], *steps)), builder.meta.shape)
    return builder.copy(seen, builder.meta)


def _along(shape: Shape, lead: int, d: int, dilation: int, stride: int, start: int) -> Element:
    """The index along an image's dimension, of (…, window's row and column, row and column)."""
    strides: list[Size] = [0] * len(shape)
    strides[lead + d], strides[lead + 2 + d] = dilation, stride
    return Element(Iota((Layout(shape, tuple(strides), start),)))


def _windows(size: Size, kernel: int, dilation: int, padding: int, stride: int) -> Size:
    """The number of windows along a dimension."""
    room = add(size, 2 * padding - dilation * (kernel - 1) - 1)
    if isinstance(room, int):
        return room // stride + 1
    steps = divide(room, stride)
    if steps is None:
        raise NoLowering("windows of an image of unknown size")
    return add(steps, 1)


@lowers("col2im")
def col2im(
    builder: Builder,
    columns: Tensor,
    size: Sequence[Size],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """Each pixel sums the windows that it lies in, in ATen's order: one read for each."""
    kernel, stride = each(kernel, 2), each(stride, 2)
    padding, dilation = each(padding, 2), each(dilation, 2)
    if any(step > 1 and wide > 1 for step, wide in zip(stride, dilation, strict=True)):
        raise NoLowering("windows with steps and gaps")
    shape = builder.meta.shape
    lead = len(shape) - 2
    windows = [_windows(size[d], kernel[d], dilation[d], padding[d], stride[d]) for d in (0, 1)]
    total = overlapping(
        builder,
        builder.reshape(columns, (*shape[:lead], *kernel, *windows)),
        [
            Side(lead + d, kernel[d], stride[d], lead + 2 + d, lead + d, padding[d], dilation[d])
            for d in (0, 1)
        ],
    )
    return builder.map(total.to(builder.meta.dtype).expression)


@lowers("unfold_backward")
def unfold_backward(
    builder: Builder, grad: Tensor, sizes: Sequence[Size], dim: int, size: int, step: int
) -> Tensor:
    """Each element sums the windows that it lies in, the first one first, as in ATen's kernel
    (aten/src/ATen/native/cpu/UnfoldBackwardKernel.cpp): one read for each."""
    rank = len(builder.meta.shape)
    if not rank:
        raise NoLowering("windows of a number")
    dim %= rank
    side = Side(dim, size, step, window=dim, within=rank)
    total = overlapping(builder, grad, [side], first=True)
    return builder.map(total.to(builder.meta.dtype).expression)


@dataclass(frozen=True, slots=True)
class Side:
    """The windows along one dimension of the result."""

    dim: int
    kernel: int
    stride: int
    window: int
    """The dimension of the summands that has an element for each window."""
    within: int | None = None
    """The one that has an element for each place in a window; None: a summand for all of them."""
    padding: int = 0
    dilation: int = 1
    """1 unless the stride is 1, and `within` is given."""


def overlapping(
    builder: Builder, summands: Tensor, sides: Sequence[Side], *, first: bool = False
) -> Element:
    """For each element of the builder's output, the sum over the windows that it lies in: one read
    for each, beginning with the last window, or with the `first` one. Raises `NoLowering` for more
    than `MOST` windows."""
    shape = builder.meta.shape
    counts = [-(-side.kernel // side.stride) for side in sides]
    if prod(counts) > MOST:
        raise NoLowering(f"windows that overlap {prod(counts)} times")
    order = storage_order(shape, builder.meta.strides)
    memory = builder.in_memory(summands)
    still = set(range(len(shape))) - {side.dim for side in sides}
    fixed = base(memory, shape, {d: d for d in sorted(still)})
    summed = []
    for before in product(*(range(count)[:: -1 if first else 1] for count in counts)):
        start, terms = fixed, []
        inside: Element | None = None
        for side, skipped in zip(sides, before, strict=True):
            place = position(shape, side.dim, order)
            if side.padding:
                place = place + side.padding
            if side.stride == 1:
                by = side.padding - skipped * side.dilation
                window = position(shape, side.dim, order, start=by)
            else:
                window = apply("floor_divide", place, side.stride) - skipped
            indices = {side.window: window}
            if side.within is not None and side.stride == 1:
                passed = multiply(memory.strides[side.within], skipped)
                start = replace(start, offset=add(start.offset, passed))
            elif side.within is not None:
                rest = apply("remainder", place, side.stride)
                indices[side.within] = rest + skipped * side.stride
            elif (skipped + 1) * side.stride > side.kernel:
                own = apply("remainder", place, side.stride) < side.kernel - skipped * side.stride
                inside = own if inside is None else inside & own
            terms += [unchecked(memory, d, indices[d]) for d in sorted(indices)]
        view = compose_views((start,), (permute(shape, order),))
        read = Gather(memory.value, view, tuple(terms), memory.dtype, 0)
        seen = Element(read).to(compute_dtype(memory.dtype))
        if inside is not None:
            seen = where(inside, seen, number(0, seen.dtype))
        summed.append(seen)
    if not summed:
        return number(0, compute_dtype(memory.dtype))
    return reduce(operator.add, summed)
