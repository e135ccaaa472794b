"""Variances and standard deviations.

Computed as a mean, then a second reduction over the squared distances from it: the row is still in
cache, and two passes beat Welford's recurrence. Source: aten/src/ATen/native/ReduceOps.cpp
(std_var_out).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import Element, larger, size_element, sqrt
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
from tcw.compiler.lowering.tensors import Tensor


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
