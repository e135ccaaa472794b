"""`unfold` and `fold` of images, whose windows are columns; the gradient of `unfold` of tensors.

Without padding it is a view of the image; otherwise one read for each element, zero beyond the
border. Source: aten/src/ATen/native/im2col.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from compiler.loops.dtypes import compute_dtype
from compiler.loops.expressions import Gather, IndexTerm, Iota
from compiler.loops.layouts import Layout, Shape, compose_views, permute, row_major
from compiler.loops.sizes import Size, add, divide, multiply
from compiler.lowering.builder import Builder, storage_order
from compiler.lowering.elements import Element, apply, position
from compiler.lowering.indexing import Strided, base, strided
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Tensor
from compiler.lowering.windows import MOST, each


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
    memory = strided(builder, image)
    terms = tuple(
        memory.term(lead + d, Iota((_along(shape, lead, d, dilation[d], stride[d], -padding[d]),)))
        for d in (0, 1)
    )
    view = base(memory, shape, {d: d for d in range(lead)})
    return builder.map(Gather(memory.value, (view,), terms, memory.dtype, 0))


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


def _along(shape: Shape, lead: int, d: int, dilation: int, stride: int, start: int) -> Layout:
    """The index along an image's dimension, of (…, window's row and column, row and column)."""
    strides: list[Size] = [0] * len(shape)
    strides[lead + d], strides[lead + 2 + d] = dilation, stride
    return Layout(shape, tuple(strides), start)


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
    counts = [-(-extent // step) for extent, step in zip(kernel, stride, strict=True)]
    if prod(counts) > MOST:
        raise NoLowering(f"windows that overlap {prod(counts)} times")
    if any(step > 1 and wide > 1 for step, wide in zip(stride, dilation, strict=True)):
        raise NoLowering("windows with steps and gaps")
    shape = builder.meta.shape
    lead = len(shape) - 2
    windows = [_windows(size[d], kernel[d], dilation[d], padding[d], stride[d]) for d in (0, 1)]
    order = storage_order(shape, builder.meta.strides)
    memory = strided(builder, builder.reshape(columns, (*shape[:lead], *kernel, *windows)))
    fixed = base(memory, shape, {d: d for d in range(lead)})
    total: Element | None = None
    for before in product(*map(range, counts)):
        start, terms = fixed, []
        for d, dim in enumerate((lead, lead + 1)):
            window: Element
            if stride[d] == 1:
                window = _shifted(shape, dim, order, padding[d] - before[d] * dilation[d])
                skipped = multiply(memory.strides[dim], before[d])
                start = replace(start, offset=add(start.offset, skipped))
            else:
                place = position(shape, dim, order) + padding[d]
                window = apply("floor_divide", place, stride[d]) - before[d]
                within = apply("remainder", place, stride[d]) + before[d] * stride[d]
                terms.append(memory.term(dim, within.expression))
            terms.append(memory.term(dim + 2, window.expression))
        seen = _read(memory, start, shape, order, terms)
        total = seen if total is None else total + seen
    assert total is not None
    return builder.map(total.to(builder.meta.dtype).expression)


@lowers("unfold_backward")
def unfold_backward(
    builder: Builder, grad: Tensor, sizes: Sequence[Size], dim: int, size: int, step: int
) -> Tensor:
    """Each element sums the windows that it lies in, the first one first, as in ATen's kernel
    (aten/src/ATen/native/cpu/UnfoldBackwardKernel.cpp): one read for each."""
    shape = builder.meta.shape
    windows = -(-size // step)
    if not shape or windows > MOST:
        raise NoLowering(f"windows that overlap {windows} times")
    dim %= len(shape)
    order = storage_order(shape, builder.meta.strides)
    memory = strided(builder, grad)
    fixed = base(memory, shape, {d: d for d in range(len(shape)) if d != dim})
    total: Element | None = None
    for before in reversed(range(windows)):
        window = _shifted(shape, dim, order, -before)
        start, terms = fixed, []
        if step == 1:
            start = replace(fixed, offset=add(fixed.offset, multiply(memory.strides[-1], before)))
        else:
            place = position(shape, dim, order)
            window = apply("floor_divide", place, step) - before
            within = apply("remainder", place, step) + before * step
            terms = [memory.term(len(shape), within.expression)]
        terms.insert(0, memory.term(dim, window.expression))
        seen = _read(memory, start, shape, order, terms)
        total = seen if total is None else total + seen
    assert total is not None
    return builder.map(total.to(builder.meta.dtype).expression)


def _read(
    memory: Strided, start: Layout, shape: Shape, order: Sequence[int], terms: list[IndexTerm]
) -> Element:
    """The element at an offset and some indices; 0 where one of them lies outside."""
    view = compose_views((start,), (permute(shape, order),))
    read = Gather(memory.value, view, tuple(terms), memory.dtype, 0)
    return Element(read).to(compute_dtype(memory.dtype))


def _shifted(shape: Shape, dim: int, order: Sequence[int], by: int) -> Element:
    """The index along one dimension, and `by`."""
    strides = tuple(1 if d == dim else 0 for d in order)
    return Element(Iota((Layout(tuple(shape[d] for d in order), strides, by),)))
