"""Windows of adaptive pooling along one dimension: `count` of them cover `size` elements, and their
widths differ by one or two if the sizes do not divide.

Window o has the elements from floor(o * size / count) to ceil((o + 1) * size / count), the end
excluded. Source: aten/src/ATen/native/AdaptivePooling.h. Element i lies in the windows from
floor(i * count / size) to ceil((i + 1) * count / size), so a gradient has windows of the same kind
with the sizes exchanged.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

from tcw.compiler.loops.layouts import Shape
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import Element, apply, minimum, number, position, where
from tcw.compiler.lowering.indexing import read_at
from tcw.compiler.lowering.registry import NoLowering
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.lowering.windows import check_elements


def several_sizes(whole: Shape, windows: Shape, rank: int) -> bool:
    """Whether the windows over the last dimensions have known sizes that differ."""
    known = [
        (size, count)
        for size, count in zip(whole[-rank:], windows[-rank:], strict=True)
        if isinstance(size, int) and isinstance(count, int) and count
    ]
    return len(known) == rank and any(size % count for size, count in known)


class Uneven:
    """The windows along one dimension. Raises `NoLowering` for windows of more than `MOST`
    elements, or for sizes that are not known."""

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
