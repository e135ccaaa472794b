"""Average pooling of images, and its gradient for windows that tile the image.

Each pixel of a window is one read. If all windows lie inside the image it goes through a strided
view; otherwise through an index clamped to the border, and pixels beyond the border count as zero.
Pixels are summed in ATen's order, row by row. Source: aten/src/ATen/native/cpu/AvgPoolKernel.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from compiler.loops.dtypes import FLOATS, compute_dtype
from compiler.loops.expressions import Gather, IndexTerm, SizeOf, convert
from compiler.loops.layouts import Layout, Shape, compose_views, permute, row_major, slice_dimension
from compiler.loops.sizes import Size
from compiler.lowering.builder import Builder, storage_order
from compiler.lowering.elements import Element, apply, maximum, minimum, number, position, where
from compiler.lowering.indexing import Strided, base, strided
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Tensor

LARGEST_WINDOW = 25
"""In pixels; each is a separate read in the loop's code."""


@lowers("avg_pool2d")
def avg_pool2d(
    builder: Builder,
    image: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    meta = builder.meta
    windows = Windows(image, builder, kernel, stride or kernel, padding)
    if meta.dtype not in FLOATS or windows.pixels > LARGEST_WINDOW:
        raise NoLowering("integers, or windows of many pixels")
    divisor: Element | int = divisor_override or windows.pixels
    if windows.padding == (0, 0) and not (ceil_mode and windows.reach_beyond()):
        pixels = windows.views()
    else:
        channels = len(meta.shape) - 3
        if meta.strides[channels] != 1 or meta.shape[channels] == 1:
            raise NoLowering("at the border, and the channels of a pixel are not side by side")
        if windows.stride != (1, 1):
            raise NoLowering("strided windows at the border: ATen skips the pixels beyond it")
        pixels = windows.clipped()
        if not (count_include_pad or divisor_override):
            divisor = windows.counted().to(windows.compute)
    mean = apply("div", reduce(lambda one, other: one + other, pixels), divisor)
    return builder.map(mean.to(meta.dtype).expression)


@lowers("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(builder: Builder, image: Tensor, size: Sequence[Size]) -> Tensor:
    """Lowered only if all windows have one size, which makes them tile the image."""
    sizes = _tiles(image.shape, builder.meta.shape)
    windows = Windows(image, builder, sizes, sizes, (0,))
    if builder.meta.dtype not in FLOATS or windows.pixels > LARGEST_WINDOW:
        raise NoLowering("integers, or windows of many pixels")
    total = reduce(lambda one, other: one + other, windows.views())
    mean = total / sizes[0] / sizes[1]
    return builder.map(mean.to(builder.meta.dtype).expression)


class Windows:
    """The positions of the pooling windows in the image."""

    def __init__(
        self,
        image: Tensor,
        builder: Builder,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
    ) -> None:
        self.image, self.builder = image, builder
        self.shape = builder.meta.shape
        self.order = storage_order(self.shape, builder.meta.strides)
        self.kernel, self.stride, self.padding = _pair(kernel), _pair(stride), _pair(padding)
        self.pixels = self.kernel[0] * self.kernel[1]
        self.dims = (len(self.shape) - 2, len(self.shape) - 1)
        self.compute = compute_dtype(image.dtype)

    def reach_beyond(self) -> bool:
        """Whether the last windows may extend beyond an image without padding."""
        for dim, kernel, stride in zip(self.dims, self.kernel, self.stride, strict=True):
            size, count = self.image.shape[dim], self.shape[dim]
            if not isinstance(size, int) or not isinstance(count, int):
                return True
            if (count - 1) * stride + kernel > size:
                return True
        return False

    def views(self) -> list[Element]:
        """The pixels, if all windows lie inside the image."""
        found = []
        for y in range(self.kernel[0]):
            for x in range(self.kernel[1]):
                pixel = self.image
                for d, start in ((0, y), (1, x)):
                    dim = self.dims[d]
                    layout = slice_dimension(
                        pixel.shape, dim, start, self.shape[dim], self.stride[d]
                    )
                    pixel = self.builder.view(pixel, layout, layout.shape)
                loaded = self.builder.load(pixel, self.shape, self.order)
                found.append(Element(loaded).to(self.compute))
        return found

    def clipped(self) -> list[Element]:
        """The pixels, with zeros beyond the border."""
        memory = strided(self.builder, self.image)
        still = {d: d for d in range(self.dims[0])}
        layout = base(memory, self.shape, still)
        view = compose_views((layout,), (permute(self.shape, self.order),))
        rows, columns = (
            [self._at(memory, d, step) for step in range(self.kernel[d])] for d in (0, 1)
        )
        found = []
        for row, row_inside in rows:
            for column, column_inside in columns:
                pixel = Gather(memory.value, view, (row, column), memory.dtype)
                loaded = Element(convert(pixel, self.compute))
                found.append(where(row_inside & column_inside, loaded, 0))
        return found

    def counted(self) -> Element:
        """The number of pixels of each window that lie in the image."""
        sides = []
        for d, dim in enumerate(self.dims):
            start = self._start(d)
            sides.append(minimum(start + self.kernel[d], self._size(dim)) - maximum(start, 0))
        return sides[0] * sides[1]

    def _size(self, dim: int) -> Element:
        size = self.image.shape[dim]
        return number(size, "int64") if isinstance(size, int) else Element(SizeOf(size))

    def _start(self, d: int) -> Element:
        """The index of each window's first pixel along a dimension; negative in the padding."""
        place = position(self.shape, self.dims[d], self.order)
        return place * self.stride[d] - self.padding[d]

    def _at(self, memory: Strided, d: int, step: int) -> tuple[IndexTerm, Element]:
        """A pixel's index along a dimension, clamped to the image, and whether it was inside."""
        dim = self.dims[d]
        size = self._size(dim)
        index = self._start(d) + step
        inside = (index >= 0) & (index < size)
        moved = minimum(maximum(index, 0), size - 1)
        return IndexTerm(
            moved.expression,
            memory.shape[dim],
            memory.strides[dim],
            wraps=False,
            checked=False,
        ), inside


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
    sizes = _tiles(builder.meta.shape, grad.shape)
    if _pair(padding) != (0, 0) or {_pair(kernel), _pair(stride or kernel)} != {sizes}:
        raise NoLowering("windows that overlap, leave pixels out, or lie over the border")
    divisor = divisor_override or sizes[0] * sizes[1]
    return _spread(builder, grad, sizes, (divisor,))


@lowers("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(builder: Builder, grad: Tensor, image: Tensor) -> Tensor:
    sizes = _tiles(builder.meta.shape, grad.shape)
    return _spread(builder, grad, sizes, sizes)


def _spread(
    builder: Builder, grad: Tensor, sizes: tuple[int, int], divisors: tuple[int, ...]
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


def _tiles(image: Shape, windows: Shape) -> tuple[int, int]:
    """The size of the windows that tile the image."""
    found = []
    for whole, count in zip(image[-2:], windows[-2:], strict=True):
        if not isinstance(whole, int) or not isinstance(count, int):
            raise NoLowering("windows of unknown size")
        if not count or whole % count:
            raise NoLowering("windows of several sizes")
        found.append(whole // count)
    return found[0], found[1]


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    return numbers[0], numbers[-1]
