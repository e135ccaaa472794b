"""Vector norms and log-sum-exp over dimensions.

Sources: aten/src/ATen/native/LinearAlgebra.cpp, native/ReduceOps.cpp (logsumexp_out_impl).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from compiler.loops.dtypes import compute_dtype
from compiler.loops.graph import ReduceOp
from compiler.lowering.builder import Builder
from compiler.lowering.elements import Element, apply, eq, exp, log, ne, sqrt, where
from compiler.lowering.promotion import Number
from compiler.lowering.reduction import Dims, dimensions, finish, reduce_formula, same
from compiler.lowering.registry import lowers
from compiler.lowering.tensors import Tensor


@lowers("linalg_vector_norm")
def vector_norm(
    builder: Builder,
    x: Tensor,
    order: Number = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """(sum |x|**order) ** (1/order); the extremes for infinite orders, a count for order 0."""
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    op: ReduceOp = "max" if order == math.inf else "min" if order == -math.inf else "sum"
    powers: dict[Number, Callable[[Element], Element]] = {
        math.inf: abs,
        -math.inf: abs,
        0: lambda e: ne(e, 0).to(compute),
        1: abs,
        2: lambda e: e * e,
    }
    power = powers.get(order) or (lambda e: apply("pow", abs(e), order))
    summed = reduce_formula(
        builder, op, power, (x,), dims, keepdim=True, compute=compute, dtype=compute
    )

    def root(s: Element) -> Element:
        if order in (math.inf, -math.inf, 0, 1):
            return s
        return sqrt(s) if order == 2 else apply("pow", s, 1 / order)

    return finish(builder, root, (summed,), compute)


@lowers("logsumexp")
def logsumexp(builder: Builder, x: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """Computed relative to the largest term, unless that is infinite."""
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    top = reduce_formula(
        builder, "max", same, (x,), dims, keepdim=True, compute=compute, dtype=compute, name="amax"
    )

    def finite(m: Element) -> Element:
        return where(eq(abs(m), math.inf), 0, m)

    summed = reduce_formula(
        builder,
        "sum",
        lambda e, m: exp(e - finite(m)),
        (x, top),
        dims,
        keepdim=True,
        compute=compute,
        dtype=compute,
        name="sum",
    )
    return finish(builder, lambda s, m: log(s) + finite(m), (summed, top), compute)
