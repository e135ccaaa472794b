"""Windows over the last dimensions of a tensor: pooling, and the columns of an image.

Each element of a window is one read. If all windows lie inside the tensor it is a strided view,
which fusion sees through; otherwise a read that has a given number beyond the border.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import mul

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.layouts import Shape, slice_dimension
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.elements import (
    Element,
    apply,
    maximum,
    minimum,
    number,
    position,
    size_element,
    where,
)
from tcw.compiler.lowering.indexing import read_at
from tcw.compiler.lowering.registry import NoLowering
from tcw.compiler.lowering.tensors import Tensor

MOST = 27
"""Elements of the largest window that is lowered; each is a separate read in the loop's code."""


def check_elements(count: int) -> None:
    """Raises `NoLowering` for windows of more than `MOST` elements."""
    if count > MOST:
        raise NoLowering(f"windows of {count} elements")


class Windows:
    """The windows of an operation whose output has one element for each.

    `kernel`, `stride`, `padding` and `dilation` have a number per dimension, or one for all.
    `rank`: the number of dimensions that the windows slide over, which are the last ones.
    Raises `NoLowering` for windows of more than `MOST` elements.
    """

    def __init__(
        self,
        builder: Builder,
        tensor: Tensor,
        rank: int,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
    ) -> None:
        self.builder, self.tensor = builder, tensor
        self.shape = builder.meta.shape
        self.order = storage_order(self.shape, builder.meta.strides)
        self.kernel, self.stride = each(kernel, rank), each(stride or kernel, rank)
        self.padding, self.dilation = each(padding, rank), each(dilation, rank)
        self.elements = prod(self.kernel)
        self.dims = tuple(range(len(self.shape) - rank, len(self.shape)))
        self.compute = compute_dtype(tensor.dtype)
        check_elements(self.elements)

    def inside(self) -> bool:
        """Whether all windows certainly lie inside the tensor."""
        if any(self.padding):
            return False
        for d, dim in enumerate(self.dims):
            size, count = self.tensor.shape[dim], self.shape[dim]
            if not isinstance(size, int) or not isinstance(count, int):
                return False
            reach = (self.kernel[d] - 1) * self.dilation[d]
            if (count - 1) * self.stride[d] + reach >= size:
                return False
        return True

    def seen(self, otherwise: float) -> list[Element]:
        """The elements of each window, row by row, with `otherwise` beyond the border."""
        steps = list(product(*(range(size) for size in self.kernel)))
        if self.inside():
            return [self._view(step) for step in steps]
        memory = self.builder.in_memory(self.tensor)
        found = []
        for step in steps:
            indices = {}
            for d, dim in enumerate(self.dims):
                start = step[d] * self.dilation[d] - self.padding[d]
                indices[dim] = position(
                    self.shape, dim, self.order, step=self.stride[d], start=start
                )
            read = read_at(memory, self.shape, self.order, indices, otherwise)
            found.append(read.to(self.compute))
        return found

    def places(self, order: Sequence[int]) -> list[Element]:
        """The flat index, in the last dimensions, of each element of a window: of the first one in
        the tensor if it lies before it. Row by row, for a domain with its dimensions in `order`."""
        found = []
        for step in product(*(range(size) for size in self.kernel)):
            places = []
            for d, dim in enumerate(self.dims):
                at = position(self.shape, dim, order) * self.stride[d]
                at = at + (step[d] * self.dilation[d] - self.padding[d])
                places.append(maximum(at, 0) if self.padding[d] else at)
            found.append(flat(places, self.tensor.shape[self.dims[0] :]))
        return found

    def counted(self, *, padded: bool) -> Element:
        """The number of elements of each window that lie in the tensor, or in its padding too."""
        sides = []
        for d, dim in enumerate(self.dims):
            end = size_element(self.tensor.shape[dim])
            start = position(self.shape, dim, self.order) * self.stride[d] - self.padding[d]
            if padded:
                sides.append(minimum(start + self.kernel[d], end + self.padding[d]) - start)
            else:
                sides.append(minimum(start + self.kernel[d], end) - maximum(start, 0))
        return reduce(mul, sides)

    def _view(self, step: Sequence[int]) -> Element:
        seen = self.tensor
        for d, dim in enumerate(self.dims):
            start = step[d] * self.dilation[d]
            layout = slice_dimension(seen.shape, dim, start, self.shape[dim], self.stride[d])
            seen = self.builder.view(seen, layout, layout.shape)
        return Element(self.builder.load(seen, self.shape, self.order)).to(self.compute)


def flat(at: Sequence[Element], sizes: Sequence[Size]) -> Element:
    """The row-major index of a position in dimensions of these sizes."""
    total = at[0]
    for element, size in zip(at[1:], sizes[1:], strict=True):
        total = total * size_element(size) + element
    return total


def each(numbers: Sequence[int], rank: int) -> tuple[int, ...]:
    """A number per dimension."""
    return tuple(numbers) if len(numbers) == rank else (numbers[0],) * rank


def in_tiles(builder: Builder, image: Tensor, sizes: tuple[int, ...]) -> tuple[Tensor, list[int]]:
    """The image with two dimensions for each that windows of these sizes tile, a window's number
    and the place in it; and which dimensions are the places."""
    lead = len(image.shape) - len(sizes)
    pairs = zip(builder.meta.shape[lead:], sizes, strict=True)
    shape = (*image.shape[:lead], *(size for pair in pairs for size in pair))
    return builder.reshape(image, shape), [lead + 2 * d + 1 for d in range(len(sizes))]


def tiles(whole: Shape, windows: Shape, rank: int) -> tuple[int, ...]:
    """The size of the windows that tile a tensor's last dimensions."""
    found = []
    for size, count in zip(whole[-rank:], windows[-rank:], strict=True):
        if not isinstance(size, int) or not isinstance(count, int):
            raise NoLowering("windows of unknown size")
        if not count or size % count:
            raise NoLowering("windows of several sizes")
        found.append(size // count)
    return tuple(found)


def several_sizes(whole: Shape, windows: Shape, rank: int) -> bool:
    """Whether the windows over the last dimensions have known sizes that differ."""
    known = [
        (size, count)
        for size, count in zip(whole[-rank:], windows[-rank:], strict=True)
        if isinstance(size, int) and isinstance(count, int) and count
    ]
    return len(known) == rank and any(size % count for size, count in known)


class Uneven:
    """Windows of adaptive pooling along one dimension: `count` of them cover `size` elements, and
    their widths differ by one or two if the sizes do not divide.

    Window o has the elements from floor(o * size / count) to ceil((o + 1) * size / count), the end
    excluded (aten/src/ATen/native/AdaptivePooling.h). Element i lies in the windows from floor(i *
    count / size) to ceil((i + 1) * count / size), so a gradient has windows of the same kind with
    the sizes exchanged.
    """

    def __init__(self, size: Size, count: Size) -> None:
        if not isinstance(size, int) or not isinstance(count, int):
            raise NoLowering("windows of unknown size")
        self.size, self.count = size, count
        widths = [-(-(o + 1) * size // count) - o * size // count for o in range(count)]
        self.least, self.most = min(widths), max(widths)
        check_elements(self.most)

    def start(self, window: Element) -> Element:
        return apply("floor_divide", window * self.size, self.count)

    def width(self, window: Element) -> Element:
        if self.least == self.most:
            return number(self.most, "int64")
        end = apply("floor_divide", (window + 1) * self.size + (self.count - 1), self.count)
        return end - self.start(window)

    def total(
        self,
        builder: Builder,
        tensor: Tensor,
        dim: int,
        shape: Shape,
        order: Sequence[int],
        compute: str,
    ) -> Element:
        """The sum of each window along `dim`, in the order of its elements: for a domain `shape`,
        which has the windows in the place of the elements, with its dimensions in `order`."""
        memory = builder.in_memory(tensor)
        window = position(shape, dim, order)
        start, width = self.start(window), self.width(window)
        summed = []
        for step in range(self.most):
            at = start + step
            if step >= self.least:
                at = minimum(at, self.size - 1)
            seen = read_at(memory, shape, order, {dim: at}).to(compute)
            if step >= self.least:
                seen = where(number(step, "int64") < width, seen, number(0, compute))
            summed.append(seen)
        return reduce(operator.add, summed)
