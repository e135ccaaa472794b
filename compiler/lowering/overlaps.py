"""Sums over windows that overlap: `fold`, and the gradients of `unfold` and of average pooling."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Gather
from tcw.compiler.loops.layouts import compose_views, permute
from tcw.compiler.loops.sizes import add, multiply
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.elements import Element, apply, number, position, where
from tcw.compiler.lowering.indexing import base, unchecked
from tcw.compiler.lowering.registry import NoLowering
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.lowering.windows import MOST


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
