"""Adaptive max pooling: as many windows as asked for, which may differ in size.

Source: aten/src/ATen/native/cpu/AdaptiveMaxPoolKernel.cpp. ATen compares one element at a time,
but channels-last images along their channels. An index is that of the first
maximum in its plane, or of the last NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from tcw.compiler.loops.dtypes import FLOATS, compute_dtype, limits
from tcw.compiler.loops.graph import ReduceOp
from tcw.compiler.lowering.builder import Builder, reading_order, storage_order
from tcw.compiler.lowering.elements import Element, apply, minimum, number, position, where
from tcw.compiler.lowering.indexing import read_at
from tcw.compiler.lowering.pooling import VECTOR, indices_of, like, max_pooled, maxima_of
from tcw.compiler.lowering.reduction import reduce_formula, same
from tcw.compiler.lowering.registry import NoLowering, Worth, estimates, lowers
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.lowering.uneven_windows import Uneven, several_sizes
from tcw.compiler.lowering.windows import MOST, check_elements, flat, in_tiles, tiles

SHORT = 16
"""Elements of a row in which a search for the maximum does not fill a vector: ATen takes 1.0 ns for
each of a tile of 14 x 14, the loops 1.9; of 28 x 28, 0.7 and 0.5 (Zen 4, float32)."""


@estimates("adaptive_max_pool2d", "adaptive_max_pool3d")
def worth(builder: Builder, image: Tensor, size: Sequence[int]) -> Worth | None:
    """Of a channels-last image, in nanoseconds a result, as for other max pooling. Elements of
    windows of several sizes are read one at a time: an assumption, not measured."""
    meta, rank = builder.meta, len(size)
    if len(meta.shape) == rank or meta.strides[-rank - 1] != 1 or meta.strides[-1] == 1:
        return None
    channels = meta.shape[-rank - 1]
    elements = 1.0
    for whole, count in zip(image.shape[-rank:], meta.shape[-rank:], strict=True):
        if not isinstance(whole, int) or not isinstance(count, int) or not count:
            return None
        elements *= whole / count
    if isinstance(channels, int) and channels < VECTOR:
        return None
    loops = (1.5 if several_sizes(image.shape, meta.shape, rank) else 0.4) * elements
    why = f"maxima of {elements:.0f} elements with their indices, along {channels} channels"
    return Worth(loops, 0.4 + 0.2 * elements, why)


@lowers("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(
    builder: Builder, image: Tensor, size: Sequence[int]
) -> tuple[Tensor, Tensor | None]:
    shape, rank = builder.meta.shape, len(size)
    if several_sizes(image.shape, shape, rank):
        return _of_several_sizes(builder, image, rank)
    sizes = tiles(image.shape, shape, rank)
    if math.prod(sizes) <= MOST:
        return max_pooled(rank, builder, image, sizes)
    return _reduced(builder, image, sizes)


def _of_several_sizes(builder: Builder, image: Tensor, rank: int) -> tuple[Tensor, Tensor | None]:
    """A read for each element of the largest window; those of smaller ones repeat their last."""
    shape = builder.meta.shape
    order = storage_order(shape, builder.meta.strides)
    dims = range(len(shape) - rank, len(shape))
    windows = [Uneven(image.shape[dim], shape[dim]) for dim in dims]
    check_elements(math.prod(each.most for each in windows))
    memory = builder.in_memory(image)
    along = []
    for window, dim in zip(windows, dims, strict=True):
        at = position(shape, dim, order)
        start = window.start(at)
        last = start + window.width(at) - 1
        along.append(
            [
                start + step if step < window.least else minimum(start + step, last)
                for step in range(window.most)
            ]
        )
    seen, places = [], []
    for chosen in product(*along):
        read = read_at(memory, shape, order, dict(zip(dims, chosen, strict=True)))
        seen.append(read.to(compute_dtype(memory.dtype)))
        places.append(flat(chosen, [window.size for window in windows]))
    maxima = maxima_of(builder, seen, image.dtype)
    if 1 in builder.unread:
        return maxima, None
    return maxima, indices_of(builder, seen, places, maxima, seen[0].dtype)


def _reduced(
    builder: Builder, image: Tensor, sizes: tuple[int, ...]
) -> tuple[Tensor, Tensor | None]:
    """Large windows that tile an image: a reduction over a dimension for each of the image's."""
    meta, rank = like(builder, image.dtype), len(sizes)
    lead = len(image.shape) - rank
    indexed = 1 not in builder.unread
    innermost = reading_order(image)[-1] - lead
    if indexed and innermost >= 0 and 1 < sizes[innermost] < SHORT:
        raise NoLowering(f"indices in rows of {sizes[innermost]} elements")
    tiled, dims = in_tiles(builder, image, sizes)
    compute = compute_dtype(image.dtype)
    greatest = reduce_formula(
        builder, "max", same, (tiled,), dims, compute, keepdim=True, dtype=image.dtype
    )
    maxima = builder.copy(builder.reshape(greatest, meta.shape), meta)
    if not indexed:
        return maxima, None
    order = range(len(tiled.shape))
    x, most = (
        Element(builder.load(tensor, tiled.shape, order)).to(compute)
        for tensor in (tiled, greatest)
    )
    at = [
        position(tiled.shape, lead + 2 * d, order) * size
        + position(tiled.shape, lead + 2 * d + 1, order)
        for d, size in enumerate(sizes)
    ]
    place = flat(at, image.shape[lead:])

    def best(op: ReduceOp, chosen: Element, otherwise: int) -> Element:
        places = builder.map(
            where(chosen, place, number(otherwise, "int64")).expression,
            builder.contiguous(tiled.shape, "int64"),
        )
        found = reduce_formula(builder, op, same, (places,), dims, "int64")
        inner = storage_order(meta.shape, meta.strides)
        return Element(builder.load(builder.reshape(found, meta.shape), meta.shape, inner))

    found = best("min", apply("eq", x, most), limits("int64")[1])
    if image.dtype in FLOATS:
        inner = storage_order(meta.shape, meta.strides)
        whole = Element(builder.load(maxima, meta.shape, inner)).to(compute)
        found = where(apply("isnan", whole), best("max", apply("isnan", x), -1), found)
    second = builder.metas[1]
    assert second is not None
    return maxima, builder.map(found.expression, second)
