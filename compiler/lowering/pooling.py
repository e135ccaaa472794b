"""Max pooling of images whose indices of the maxima are unused.

Source: aten/src/ATen/native/DilatedMaxPool2d.cpp. ATen's kernel always computes the indices, which
take twice the memory of the maxima.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from compiler.loops.dtypes import FLOATS
from compiler.lowering.builder import Builder
from compiler.lowering.elements import RANGES, maximum
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Tensor
from compiler.lowering.windows import Windows


@lowers("max_pool2d_with_indices")
def max_pool2d(
    builder: Builder, image: Tensor, *arguments: Sequence[int], ceil_mode: bool = False
) -> tuple[Tensor, None]:
    return _max_pool(builder, image, 2, *arguments)


@lowers("max_pool3d_with_indices")
def max_pool3d(
    builder: Builder, image: Tensor, *arguments: Sequence[int], ceil_mode: bool = False
) -> tuple[Tensor, None]:
    return _max_pool(builder, image, 3, *arguments)


def _max_pool(
    builder: Builder,
    image: Tensor,
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: object = False,
) -> tuple[Tensor, None]:
    """`ceil_mode` matters for the number of windows alone, which the output's shape has."""
    if 1 not in builder.unread:
        raise NoLowering("the indices of the maxima are used")
    windows = Windows(builder, image, rank, kernel, stride, padding, dilation)
    least = -math.inf if image.dtype in FLOATS else RANGES[image.dtype][0]
    greatest = reduce(maximum, windows.seen(least))
    return builder.map(greatest.to(builder.meta.dtype).expression), None
