"""Variances and standard deviations.

Computed as a mean, then a second reduction over the squared distances from it: the row is still in
cache, and two passes beat Welford's recurrence. Source: aten/src/ATen/native/ReduceOps.cpp
(std_var_out).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.loops.dtypes import compute_dtype
from compiler.lowering.builder import Builder
from compiler.lowering.elements import Element, larger, size_element, sqrt
from compiler.lowering.promotion import Number
from compiler.lowering.reduction import (
    Dims,
    count,
    dimensions,
    finish,
    over_count,
    reduced_rows,
    same,
)
from compiler.lowering.registry import lowers
from compiler.lowering.tensors import Tensor


def moments(
    builder: Builder, x: Tensor, dims: Sequence[int], compute: str
) -> tuple[Tensor, Tensor]:
    """The mean and the sum of squared distances from it, reduced dimensions kept as size 1."""
    summed = reduced_rows(builder, "sum", same, (x,), dims, compute, "sum")
    centre = finish(
        builder,
        lambda s: over_count(s, count(x, dims)),
        (summed,),
        compute,
        builder.contiguous(summed.shape, compute),
        "mean",
    )
    squares = reduced_rows(
        builder, "sum", lambda e, m: (e - m) * (e - m), (x, centre), dims, compute, "squares"
    )
    return centre, squares


def _variance(x: Tensor, dims: Sequence[int], correction: Number | None) -> Callable[..., Element]:
    """Sum of squares -> variance. Negative degrees of freedom count as 0."""
    size, lost = count(x, dims), 1 if correction is None else correction

    def formula(squares: Element) -> Element:
        if isinstance(size, int):
            return squares / max(size - lost, 0)
        return squares / larger(0, size_element(size, squares.dtype) - lost)

    return formula


@lowers("var.correction")
def variance(
    builder: Builder,
    x: Tensor,
    dim: Dims = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Tensor:
    return _spread(builder, x, dim, _variance(x, dimensions(x, dim), correction))


@lowers("std.correction")
def standard_deviation(
    builder: Builder,
    x: Tensor,
    dim: Dims = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Tensor:
    of = _variance(x, dimensions(x, dim), correction)
    return _spread(builder, x, dim, lambda squares: sqrt(of(squares)))


def _spread(
    builder: Builder, x: Tensor, dim: Dims, formula: Callable[[Element], Element]
) -> Tensor:
    """A formula of the sum of squared distances from the mean."""
    compute = compute_dtype(builder.meta.dtype)
    _, squares = moments(builder, x, dimensions(x, dim), compute)
    return finish(builder, formula, (squares,), compute)


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
    answer = finish(builder, _variance(x, dims, correction), (squares,), compute)
    if centre.dtype == builder.meta.dtype:
        return answer, builder.reshape(centre, builder.meta.shape)
    return answer, finish(builder, same, (centre,), compute)
