"""Average pooling, and its gradient for windows that tile the image.

The elements of a window are summed in ATen's order, row by row, and those beyond the border count
as zero. Source: aten/src/ATen/native/cpu/AvgPoolKernel.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from compiler.loops.dtypes import FLOATS, compute_dtype
from compiler.loops.layouts import Layout, row_major
from compiler.loops.sizes import Size
from compiler.lowering.builder import Builder
from compiler.lowering.elements import Element, apply
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Tensor
from compiler.lowering.windows import Windows, each, tiles


@lowers("avg_pool1d")
def avg_pool1d(builder: Builder, tensor: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    return _avg_pool(builder, tensor, 1, *arguments, **keywords)


@lowers("avg_pool2d")
def avg_pool2d(builder: Builder, image: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    return _avg_pool(builder, image, 2, *arguments, **keywords)


@lowers("avg_pool3d")
def avg_pool3d(builder: Builder, volume: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    return _avg_pool(builder, volume, 3, *arguments, **keywords)


def _avg_pool(
    builder: Builder,
    tensor: Tensor,
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    dtype = builder.meta.dtype
    if dtype not in FLOATS:
        raise NoLowering("integers")
    windows = Windows(builder, tensor, rank, kernel, stride, padding)
    divisor: Element | int = divisor_override or windows.elements
    if not (divisor_override or windows.inside() or (count_include_pad and not ceil_mode)):
        divisor = windows.counted(padded=count_include_pad).to(windows.compute)
    total = reduce(lambda one, other: one + other, windows.seen(0))
    return builder.map(apply("div", total, divisor).to(dtype).expression)


@lowers("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(builder: Builder, image: Tensor, size: Sequence[Size]) -> Tensor:
    """Lowered only if all windows have one size, which makes them tile the image."""
    sizes = tiles(image.shape, builder.meta.shape, 2)
    if builder.meta.dtype not in FLOATS:
        raise NoLowering("integers")
    windows = Windows(builder, image, 2, sizes)
    total = reduce(lambda one, other: one + other, windows.seen(0))
    mean = total / sizes[0] / sizes[1]
    return builder.map(mean.to(builder.meta.dtype).expression)


@lowers("avg_pool2d_backward")
def avg_pool2d_backward(
    builder: Builder,
    grad: Tensor,
    image: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    sizes = tiles(builder.meta.shape, grad.shape, 2)
    if any(padding) or {each(kernel, 2), each(stride or kernel, 2)} != {sizes}:
        raise NoLowering("windows that overlap, leave pixels out, or lie over the border")
    divisor = divisor_override or sizes[0] * sizes[1]
    return _spread(builder, grad, sizes, (divisor,))


@lowers("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(builder: Builder, grad: Tensor, image: Tensor) -> Tensor:
    sizes = tiles(builder.meta.shape, grad.shape, 2)
    return _spread(builder, grad, sizes, sizes)


def _spread(
    builder: Builder, grad: Tensor, sizes: tuple[int, ...], divisors: tuple[int, ...]
) -> Tensor:
    """Broadcast each window's gradient to its pixels, with stride-0 digits."""
    meta = builder.meta
    if meta.dtype not in FLOATS:
        raise NoLowering("integers")
    first = len(meta.shape) - 2
    strides = row_major(grad.shape).strides
    digits, steps = list(grad.shape[:first]), list(strides[:first])
    for d in (0, 1):
        digits += [grad.shape[first + d], sizes[d]]
        steps += [strides[first + d], 0]
    shown = builder.view(grad, Layout(tuple(digits), tuple(steps)), meta.shape)
    return builder.pointwise(
        [shown],
        lambda x: reduce(lambda x, divisor: x / divisor, divisors, Element(x)).expression,
        compute=compute_dtype(meta.dtype),
    )
