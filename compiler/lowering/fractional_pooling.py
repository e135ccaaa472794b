"""Fractional max pooling: maxima of windows that begin at random places.

Source: aten/src/ATen/native/FractionalMaxPool2d.cpp and FractionalMaxPool3d.cpp. ATen compares one
element at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from tcw.compiler.loops.expressions import Expression, Gather, IndexTerm
from tcw.compiler.loops.layouts import Layout, compose_views, permute
from tcw.compiler.loops.sizes import add, multiply
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.elements import Element, position, where
from tcw.compiler.lowering.indexing import base
from tcw.compiler.lowering.pooling import indices_of, maxima_of
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.lowering.views import piece
from tcw.compiler.lowering.windows import check_elements, flat

_PLACES = {2: (1, 0), 3: (0, 1, 2)}
"""Where the sample of each dimension is among those of a plane."""


@lowers("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(
    builder: Builder, image: Tensor, kernel: Sequence[int], size: Sequence[int], samples: Tensor
) -> tuple[Tensor, Tensor | None]:
    check_elements(math.prod(kernel))
    if image.dtype not in ("float32", "float64") or samples.dtype != image.dtype:
        raise NoLowering("places are computed in 16 bits")
    windows = _Windows(builder, image, kernel, samples)
    seen = windows.seen()
    maxima = maxima_of(builder, seen, image.dtype)
    if 1 in builder.unread:
        return maxima, None
    return maxima, indices_of(builder, seen, windows.places(), maxima, image.dtype)


class _Windows:
    """The windows of a pooling, in the memory order of its result."""

    def __init__(
        self, builder: Builder, image: Tensor, kernel: Sequence[int], samples: Tensor
    ) -> None:
        self.builder = builder
        self.memory = builder.in_memory(image)
        self.shape = builder.meta.shape
        self.order = storage_order(self.shape, builder.meta.strides)
        self.first = len(self.shape) - len(kernel)
        self.extents = []
        self.steps = list(product(*(range(size) for size in kernel)))
        self.starts: list[Element] = []
        """Where each window begins in each dimension."""
        for d, (count, place) in enumerate(zip(kernel, _PLACES[len(kernel)], strict=True)):
            dim = self.first + d
            size, results = image.shape[dim], self.shape[dim]
            if not isinstance(size, int) or not isinstance(results, int):
                raise NoLowering("windows of unknown size")
            self.extents.append((size, size - count))
            self.starts.append(self._start(samples, place, dim, size - count, results))

    def _start(self, samples: Tensor, place: int, dim: int, last: int, results: int) -> Element:
        at = position(self.shape, dim, self.order)
        if results == 1:
            return at + last
        sample = piece(self.builder, samples, 2, place, 1)
        planes = sample.shape[:2] if self.first == 2 else sample.shape[1:2]
        each = (*planes, *((1,) * (len(self.shape) - self.first)))
        spread = self.builder.reshape(sample, each)
        u = Element(self.builder.load(spread, self.shape, self.order))
        alpha = last / (results - 1)
        start = ((at.to(u.dtype) + u) * alpha).to("int64") - (u * alpha).to("int64")
        return where(at < results - 1, start, last)

    def seen(self) -> list[Element]:
        """The elements of each window, row by row."""
        still = {d: d for d in range(self.first)}
        layout = base(self.memory, self.shape, still)
        found = []
        for step in self.steps:
            offset = layout.offset
            terms = []
            for d, inner in enumerate(step):
                stride = self.memory.strides[self.first + d]
                offset = add(offset, multiply(inner, stride))
                last = self.extents[d][1]
                index: Expression = self.starts[d].expression
                terms.append(IndexTerm(index, last + 1, stride, wraps=False))
            moved: Layout = replace(layout, offset=offset)
            view = compose_views((moved,), (permute(self.shape, self.order),))
            read = Gather(self.memory.value, view, tuple(terms), self.memory.dtype)
            found.append(Element(read))
        return found

    def places(self) -> list[Element]:
        """The flat index of each of these elements in its plane."""
        sizes = [size for size, _ in self.extents]
        return [
            flat([start + at for start, at in zip(self.starts, step, strict=True)], sizes)
            for step in self.steps
        ]
