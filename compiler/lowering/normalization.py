"""Layer and RMS normalisation, batch normalisation with running statistics, and variances.

torch's decompositions express the gradients, group normalisation, and batch normalisation in
training. For 16-bit inputs, statistics are computed and held in float32, and rounded only as
results of the operation. A variance is a mean, then a second reduction over the squared distances
from it: the row is still in cache, and two passes beat Welford's recurrence. Sources:
aten/src/ATen/native/cpu/layer_norm_kernel.cpp, batch_norm_kernel.cpp, ReduceOps.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.layouts import Shape
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import Element, formula_map, larger, rsqrt, size_element, sqrt
from tcw.compiler.lowering.promotion import Number
from tcw.compiler.lowering.reduction import (
    Dims,
    count,
    dimensions,
    finish,
    over_count,
    reduce_formula,
    same,
)
from tcw.compiler.lowering.registry import lowers
from tcw.compiler.lowering.tensors import Meta, Tensor

FLOAT32_EPSILON = 2.0**-23
FLOAT64_EPSILON = 2.0**-52


def shown(builder: Builder, tensor: Tensor, meta: Meta | None) -> Tensor | None:
    """A statistic in the dtype and shape in which the operation returns it."""
    if meta is None:
        return None
    if tensor.dtype == meta.dtype:
        return builder.reshape(tensor, meta.shape)
    return finish(builder, same, (tensor,), tensor.dtype, meta)


def statistics(
    builder: Builder, x: Tensor, dims: Sequence[int], eps: float, compute: str
) -> tuple[Tensor, Tensor]:
    """The mean and 1/sqrt(variance + eps), with the reduced dimensions kept as size 1."""
    centre, squares = moments(builder, x, dims, compute)
    return centre, _rstd(builder, squares, count(x, dims), eps, compute)


def _rstd(builder: Builder, squares: Tensor, size: Size, eps: float, compute: str) -> Tensor:
    """1/sqrt(mean + eps) of a sum of squares."""
    meta = builder.contiguous(squares.shape, compute)
    return finish(
        builder, lambda s: rsqrt(over_count(s, size) + eps), (squares,), compute, meta, "rstd"
    )


def normalized(
    x: Element, mean: Element, rstd: Element, weight: Element | None, bias: Element | None
) -> Element:
    scaled = (x - mean) * rstd
    if weight is not None:
        scaled = scaled * weight
    return scaled if bias is None else scaled + bias


def inner(x: Tensor, shape: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The dimensions before the normalised ones, and the normalised ones."""
    rank = len(x.shape)
    return list(range(rank - len(shape))), list(range(rank - len(shape), rank))


@lowers("native_layer_norm")
def layer_norm(
    builder: Builder,
    x: Tensor,
    shape: Sequence[Any],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor | None, ...]:
    compute = compute_dtype(x.dtype)
    mean, rstd = statistics(builder, x, inner(x, shape)[1], eps, compute)
    output = formula_map(builder, normalized, (x, mean, rstd, weight, bias), compute=compute)
    return output, shown(builder, mean, builder.metas[1]), shown(builder, rstd, builder.metas[2])


@lowers("_fused_rms_norm")
def rms_norm(
    builder: Builder, x: Tensor, shape: Sequence[Any], weight: Tensor | None, eps: float | None
) -> tuple[Tensor | None, ...]:
    compute = compute_dtype(x.dtype)
    if eps is None:
        eps = FLOAT32_EPSILON if compute == "float32" else FLOAT64_EPSILON
    dims = inner(x, shape)[1]
    squares = reduce_formula(
        builder, "sum", lambda e: e * e, (x,), dims, compute, keepdim=True, name="squares"
    )
    rstd = _rstd(builder, squares, count(x, dims), eps, compute)

    def scaled(e: Element, r: Element, w: Element | None) -> Element:
        return e * r if w is None else e * r * w

    output = formula_map(builder, scaled, (x, rstd, weight), compute=compute)
    return output, shown(builder, rstd, builder.metas[1])


def _of_channels(builder: Builder, tensor: Tensor, x: Tensor) -> Tensor:
    """(channels,) -> (1, channels, 1, …)."""
    shape: Shape = tuple(size if d == 1 else 1 for d, size in enumerate(x.shape))
    return builder.reshape(tensor, shape)


def _running(
    builder: Builder, x: Tensor, mean: Tensor, variance: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """The running mean and 1/sqrt(running variance + eps), shaped like the channels."""
    compute = compute_dtype(x.dtype)
    shaped = _of_channels(builder, variance, x)
    meta = builder.contiguous(shaped.shape, compute)
    rstd = formula_map(builder, lambda v: rsqrt(v + eps), (shaped,), meta=meta, name="rstd")
    return _of_channels(builder, mean, x), rstd


def _normalize(
    builder: Builder,
    x: Tensor,
    of: tuple[Tensor, Tensor],
    weight: Tensor | None,
    bias: Tensor | None,
) -> Tensor:
    scale, shift = (
        None if tensor is None else _of_channels(builder, tensor, x) for tensor in (weight, bias)
    )
    return formula_map(builder, normalized, (x, *of, scale, shift), compute=compute_dtype(x.dtype))


def _nothing(builder: Builder, meta: Meta | None) -> Tensor | None:
    return None if meta is None else formula_map(builder, lambda: 0, (), meta=meta)


@lowers("_native_batch_norm_legit_no_training")
def batch_norm_no_training(
    builder: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    output = _normalize(builder, x, _running(builder, x, mean, variance, eps), weight, bias)
    return output, *(_nothing(builder, meta) for meta in builder.metas[1:])


def moments(
    builder: Builder, x: Tensor, dims: Sequence[int], compute: str
) -> tuple[Tensor, Tensor]:
    """The mean and the sum of squared distances from it, reduced dimensions kept as size 1."""
    summed = reduce_formula(builder, "sum", same, (x,), dims, compute, keepdim=True, name="sum")
    centre = finish(
        builder,
        lambda s: over_count(s, count(x, dims)),
        (summed,),
        compute,
        builder.contiguous(summed.shape, compute),
        "mean",
    )
    return centre, reduce_formula(
        builder,
        "sum",
        lambda e, m: (e - m) * (e - m),
        (x, centre),
        dims,
        compute,
        keepdim=True,
        name="squares",
    )


def _variance(x: Tensor, dims: Sequence[int], correction: Number | None) -> Callable[..., Element]:
    """Sum of squares -> variance. Negative degrees of freedom count as 0."""
    size, lost = count(x, dims), 1 if correction is None else correction

    def formula(squares: Element) -> Element:
        if isinstance(size, int):
            return squares / max(size - lost, 0)
        return squares / larger(0, size_element(size, squares.dtype) - lost)

    return formula


def _spread(
    of_variance: Callable[[Element], Element],
    builder: Builder,
    x: Tensor,
    dim: Dims = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Tensor:
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    variance = _variance(x, dims, correction)
    _, squares = moments(builder, x, dims, compute)
    return finish(builder, lambda total: of_variance(variance(total)), (squares,), compute)


lowers("var.correction")(partial(_spread, same))
lowers("std.correction")(partial(_spread, sqrt))


@lowers("var_mean.correction")
def variance_and_mean(
    builder: Builder,
    x: Tensor,
    dim: Dims = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    centre, squares = moments(builder, x, dims, compute)
    variance = finish(builder, _variance(x, dims, correction), (squares,), compute)
    if centre.dtype == builder.meta.dtype:
        return variance, builder.reshape(centre, builder.meta.shape)
    return variance, finish(builder, same, (centre,), compute)
