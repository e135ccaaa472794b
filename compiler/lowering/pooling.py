"""Max pooling of images, adaptive too, and the indices of the maxima where they are used.

ATen's kernels always compute the indices, which take twice the memory of the maxima, and look at
one element at a time; the adaptive one along channels if those come last. An index is that of the
first maximum in its plane, or of the last NaN. Sources: aten/src/ATen/native/DilatedMaxPool2d.cpp,
cpu/AdaptiveMaxPoolKernel.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from typing import Any

from tcw.compiler.loops.dtypes import FLOATS, compute_dtype, limits
from tcw.compiler.loops.graph import ReduceOp
from tcw.compiler.lowering.builder import Builder, reading_order, storage_order
from tcw.compiler.lowering.elements import Element, apply, maximum, minimum, number, position, where
from tcw.compiler.lowering.indexing import read_at
from tcw.compiler.lowering.reduction import reduce_formula, same
from tcw.compiler.lowering.registry import NoLowering, Worth, estimates, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor
from tcw.compiler.lowering.windows import (
    MOST,
    Uneven,
    Windows,
    check_elements,
    each,
    flat,
    in_tiles,
    several_sizes,
    tiles,
)

SHORT = 16
"""Elements of a row in which a search for the maximum does not fill a vector: ATen takes 1.0 ns for
each of a tile of 14 x 14, the loops 1.9; of 28 x 28, 0.7 and 0.5 (Zen 4, float32)."""


def max_pooled(
    rank: int,
    builder: Builder,
    image: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: object = False,
) -> tuple[Tensor, Tensor | None]:
    """`ceil_mode` matters for the number of windows alone, which the output's shape has."""
    windows = Windows(builder, image, rank, kernel, stride, padding, dilation)
    indexed = 1 not in builder.unread
    if indexed and set(windows.dilation) != {1} and not windows.inside():
        raise NoLowering("indices of windows with gaps that lie over the border")
    least = -math.inf if image.dtype in FLOATS else limits(image.dtype)[0]
    seen = windows.seen(least)
    maxima = maxima_of(builder, seen, image.dtype)
    return maxima, _indices(builder, windows, seen, maxima) if indexed else None


for _rank in (2, 3):
    lowers(f"max_pool{_rank}d_with_indices")(partial(max_pooled, _rank))


VECTOR = 8
"""Positions that fill a vector: int64 in the widest registers."""


@estimates("max_pool2d_with_indices", "max_pool3d_with_indices")
def worth(
    builder: Builder, image: Tensor, kernel: Sequence[int], *arguments: Any, **keywords: Any
) -> Worth | None:
    """With the indices, ATen walks along the channels of a channels-last image in vectors, and
    otherwise compares one element at a time (3 ns each, mostly mispredicted branches).

    Loops compare vectors in any memory order, each element with the maximum and with itself for
    NaN. Nanoseconds: measured on a Zen 4 core, float32.
    """
    if 1 in builder.unread:
        return None
    rank = 2 if len(builder.meta.shape) < 5 else 3
    elements = math.prod(each(kernel, rank))
    strides = builder.meta.strides
    channels = builder.meta.shape[-rank - 1] if len(strides) > rank else 1
    along = len(strides) > rank and strides[-rank - 1] == 1 and strides[-1] != 1
    vectors = along and (not isinstance(channels, int) or channels >= VECTOR)
    aten = 0.4 + 0.2 * elements if vectors else 3.0 * elements
    way = f"along {channels} channels" if vectors else "one element at a time"
    return Worth(0.4 * elements, aten, f"maxima of {elements} elements with their indices, {way}")


def _indices(builder: Builder, windows: Windows, seen: Sequence[Element], maxima: Tensor) -> Tensor:
    """A window of nothing but the least value has its index at its first element in the plane, to
    which the places beyond the border before it are moved."""
    meta = builder.metas[1]
    assert meta is not None
    places = windows.places(storage_order(meta.shape, meta.strides))
    return indices_of(builder, seen, places, maxima, windows.compute)


def maxima_of(builder: Builder, seen: Sequence[Element], dtype: str) -> Tensor:
    """The greatest of the elements of each window, which only the indices may need."""
    return builder.map(reduce(maximum, seen).to(dtype).expression, like(builder, dtype))


def like(builder: Builder, dtype: str) -> Meta:
    """What the maxima are, read or not."""
    return replace(builder.meta, dtype=dtype)


def indices_of(
    builder: Builder,
    seen: Sequence[Element],
    places: Sequence[Element],
    maxima: Tensor,
    compute: str,
) -> Tensor:
    """Where each maximum lies in its plane: its first place in the window, or the last NaN.

    `seen` and `places`: of the elements of a window, in order, for the memory order of the indices.
    """
    meta = builder.metas[1]
    assert meta is not None
    order = storage_order(meta.shape, meta.strides)
    greatest = Element(builder.load(maxima, meta.shape, order)).to(compute)
    found = places[-1]
    for element, place in zip(reversed(seen[:-1]), reversed(places[:-1]), strict=True):
        found = where(apply("eq", element, greatest), place, found)
    if greatest.is_float:
        for element, place in zip(seen, places, strict=True):
            found = where(apply("isnan", element), place, found)
    return builder.map(found.expression, meta)


@estimates("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_worth(builder: Builder, image: Tensor, size: Sequence[int]) -> Worth | None:
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
        tensor = reduce_formula(builder, op, same, (places,), dims, "int64")
        inner = storage_order(meta.shape, meta.strides)
        return Element(builder.load(builder.reshape(tensor, meta.shape), meta.shape, inner))

    element = best("min", apply("eq", x, most), limits("int64")[1])
    if image.dtype in FLOATS:
        inner = storage_order(meta.shape, meta.strides)
        whole = Element(builder.load(maxima, meta.shape, inner)).to(compute)
        element = where(apply("isnan", whole), best("max", apply("isnan", x), -1), element)
    second = builder.metas[1]
    assert second is not None
    return maxima, builder.map(element.expression, second)
