"""Max pooling of images, and the indices of the maxima where they are used.

Source: aten/src/ATen/native/DilatedMaxPool2d.cpp. ATen's kernel always computes the indices, which
take twice the memory of the maxima, and looks at one element at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from tcw.compiler.loops.dtypes import FLOATS, limits
from tcw.compiler.lowering.builder import Builder, storage_order
from tcw.compiler.lowering.elements import Element, apply, maximum, where
from tcw.compiler.lowering.registry import NoLowering, Worth, estimates, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor
from tcw.compiler.lowering.windows import Windows, each


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
