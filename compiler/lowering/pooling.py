"""Max pooling of images whose indices of the maxima are unused.

A window that extends beyond the border reads the border pixel again, which is in the window too:
padding is at most half a window. Source: aten/src/ATen/native/DilatedMaxPool2d.cpp. ATen's kernel
always computes the indices, which take twice the memory of the maxima.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from compiler.loops.dtypes import compute_dtype
from compiler.loops.expressions import Gather, IndexTerm, SizeOf, convert
from compiler.loops.layouts import compose_views, permute
from compiler.loops.sizes import add
from compiler.lowering.builder import Builder, storage_order
from compiler.lowering.elements import Element, apply, position
from compiler.lowering.indexing import Strided, base, strided
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Tensor

LARGEST_WINDOW = 16
"""In pixels; each is a separate read in the loop's code."""


@lowers("max_pool2d_with_indices")
def max_pool2d(
    builder: Builder,
    image: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, None]:
    meta = builder.meta
    sizes, strides = _pair(kernel), _pair(stride or kernel)
    paddings = _pair(padding)
    if 1 not in builder.unread:
        raise NoLowering("the indices of the maxima are used")
    if len(meta.shape) != 4 or meta.strides[1] != 1 or meta.shape[1] == 1:
        raise NoLowering("the channels of a pixel are not side by side")
    if _pair(dilation) != (1, 1) or ceil_mode or sizes[0] * sizes[1] > LARGEST_WINDOW:
        raise NoLowering("windows with gaps, beyond the border, or of many pixels")
    memory = strided(builder, image)
    compute = compute_dtype(image.dtype)
    order = storage_order(meta.shape, meta.strides)
    view = compose_views((base(memory, meta.shape, {0: 0, 1: 1}),), (permute(meta.shape, order),))
    rows, columns = (
        [
            _inside(memory, 2 + d, position(meta.shape, 2 + d, order) * strides[d], step)
            for step in range(-paddings[d], sizes[d] - paddings[d])
        ]
        for d in (0, 1)
    )
    pixels = [
        Element(convert(Gather(memory.value, view, (row, column), memory.dtype), compute))
        for row in rows
        for column in columns
    ]
    greatest = reduce(lambda one, other: apply("maximum", one, other), pixels)
    return builder.map(greatest.to(meta.dtype).expression), None


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    return numbers[0], numbers[-1]


def _inside(memory: Strided, dim: int, start: Element, step: int) -> IndexTerm:
    """The index `start + step`, clamped to the border."""
    size = memory.shape[dim]
    last = size - 1 if isinstance(size, int) else Element(SizeOf(add(size, -1)))
    index = apply("minimum", apply("maximum", start + step, 0), last)
    return IndexTerm(index.expression, size, memory.strides[dim], wraps=False, checked=False)
