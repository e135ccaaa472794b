"""Gradients of resampling to the nearest element by whole factors: sums of windows side by side.

ATen adds each gradient to its pixel, one at a time, row by row; so does a sum over a window.

Source: aten/src/ATen/native/UpSample.h, `nearest_idx`; aten/src/ATen/native/cpu/
UpSampleMoreKernel.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from tcw.compiler.loops.dtypes import FLOATS, rounded
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.lowering.windows import Windows, tiles


def _register(name: str, middle: bool) -> None:
    @lowers(*(f"{name}{rank}d_backward" for rank in (1, 2, 3)))
    def backward(
        builder: Builder,
        grad: Tensor,
        output_size: Sequence[Size],
        input_size: Sequence[Size],
        *scales: float | None,
    ) -> Tensor:
        return _summed(builder, grad, scales, middle=middle)


_register("upsample_nearest", middle=False)
_register("_upsample_nearest_exact", middle=True)


def _summed(
    builder: Builder, grad: Tensor, scales: Sequence[float | None], *, middle: bool
) -> Tensor:
    rank = len(grad.shape) - 2
    if grad.dtype not in FLOATS:
        raise NoLowering("integers")
    factors = tiles(grad.shape, builder.meta.shape, rank)
    given = (*scales, *(None,) * (rank - len(scales)))
    for size, factor, scale in zip(grad.shape[2:], factors, given, strict=True):
        assert isinstance(size, int)
        if not _side_by_side(size, factor, scale, middle):
            raise NoLowering("pixels of several sizes")
    windows = Windows(builder, grad, rank, factors)
    return builder.map(reduce(add, windows.seen(0)).to(builder.meta.dtype).expression)


def _side_by_side(size: int, factor: int, scale: float | None, middle: bool) -> bool:
    """Whether each `factor` neighbours of `size` elements take the same pixel.

    ATen multiplies in float32: `scale`, if the user gave one, need not be the factor.
    """
    step = rounded(1 / scale if scale and scale > 0 else 1 / factor, "float32")
    start, last = 0.5 if middle else 0.0, size // factor - 1
    return all(
        min(int(rounded((place + start) * step, "float32")), last) == place // factor
        for place in range(size)
    )
