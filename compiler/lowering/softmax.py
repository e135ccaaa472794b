"""Softmax, log-softmax and log-sum-exp.

max, exp(x - max), sum, quotient: fused, three passes over each row (docs/compiler.md). A row of
only -inf gives NaN, as in ATen. Sources: aten/src/ATen/native/cpu/SoftMaxKernel.cpp,
native/ReduceOps.cpp (logsumexp_out_impl).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import Element, eq, exp, formula_map, log, where
from tcw.compiler.lowering.reduction import Dims, dimensions, finish, reduce_formula, same
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor


def _greatest(builder: Builder, x: Tensor, dims: Sequence[int], compute: str) -> Tensor:
    return reduce_formula(builder, "max", same, (x,), dims, compute, keepdim=True, name="amax")


def _summed(
    builder: Builder,
    formula: Callable[..., Element],
    operands: tuple[Tensor, ...],
    dims: Sequence[int],
    compute: str,
) -> Tensor:
    return reduce_formula(
        builder, "sum", formula, operands, dims, compute, keepdim=True, name="sum"
    )


@lowers("_softmax")
def softmax(builder: Builder, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return _softmax(builder, x, dim, same)


@lowers("_safe_softmax")
def safe_softmax(builder: Builder, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """A softmax that returns 0 for a row of only -inf."""
    if x.dtype != builder.meta.dtype:
        raise NoLowering("a softmax that converts")

    def finite(m: Element) -> Element:
        return where(eq(m, -math.inf), 0, m)

    return _softmax(builder, x, dim, finite, lambda s: where(eq(s, 0), 1, s))


def _softmax(
    builder: Builder,
    x: Tensor,
    dim: int,
    shift: Callable[[Element], Element],
    divisor: Callable[[Element], Element] = same,
) -> Tensor:
    compute, dims = compute_dtype(x.dtype), dimensions(x, dim)
    top = _greatest(builder, x, dims, compute)
    between = Meta(x.shape, builder.meta.strides, compute)
    powers = formula_map(
        builder, lambda e, m: exp(e - shift(m)), (x, top), meta=between, name="exp"
    )
    summed = _summed(builder, same, (powers,), dims, compute)
    return formula_map(builder, lambda e, s: e / divisor(s), (powers, summed), compute=compute)


@lowers("_log_softmax")
def log_softmax(builder: Builder, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    compute, dims = compute_dtype(x.dtype), dimensions(x, dim)
    top = _greatest(builder, x, dims, compute)
    summed = _summed(builder, lambda e, m: exp(e - m), (x, top), dims, compute)
    return formula_map(builder, lambda e, m, s: e - m - log(s), (x, top, summed), compute=compute)


@lowers("logsumexp")
def logsumexp(builder: Builder, x: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """Computed relative to the largest term, unless that is infinite."""
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    top = _greatest(builder, x, dims, compute)

    def finite(m: Element) -> Element:
        return where(eq(abs(m), math.inf), 0, m)

    summed = _summed(builder, lambda e, m: exp(e - finite(m)), (x, top), dims, compute)
    return finish(builder, lambda s, m: log(s) + finite(m), (summed, top), compute)
