"""Extremes and their positions: amax, amin, max, min, aminmax, argmax, argmin.

NaN wins; among equal elements the first one wins. Sources:
aten/src/ATen/native/cpu/ReduceOpsKernel.cpp, TensorCompareKernel.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.graph import ReduceOp
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.reduction import Dims, dimensions, reduce_formula, same
from tcw.compiler.lowering.registry import lowers
from tcw.compiler.lowering.tensors import Tensor


def extreme(
    builder: Builder, x: Tensor, op: ReduceOp, dims: Sequence[int], keepdim: bool
) -> Tensor:
    """The greatest or least element; for bool, whether any or all are true."""
    compute = compute_dtype(x.dtype)
    if x.dtype == "bool":
        op = "any" if op == "max" else "all"
    return reduce_formula(builder, op, same, (x,), dims, compute, keepdim=keepdim, dtype=x.dtype)


def _register(op: ReduceOp, position: ReduceOp) -> None:
    @lowers(f"a{op}", f"{op}.default")
    def value(builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        return extreme(builder, x, op, dimensions(x, dim), keepdim)

    @lowers(f"{op}.dim")
    def both(builder: Builder, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        dims = dimensions(x, dim)
        index = _index_of(builder, x, position, dims, keepdim)
        return extreme(builder, x, op, dims, keepdim), index

    @lowers(position)
    def index(builder: Builder, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return _argument(builder, x, position, dim, keepdim)


_register("max", "argmax")
_register("min", "argmin")


def _index_of(
    builder: Builder, x: Tensor, op: ReduceOp, dims: Sequence[int], keepdim: bool
) -> Tensor:
    compute = "uint8" if x.dtype == "bool" else compute_dtype(x.dtype)
    return reduce_formula(builder, op, same, (x,), dims, compute, keepdim=keepdim, dtype="int64")


def _argument(builder: Builder, x: Tensor, op: ReduceOp, dim: int | None, keepdim: bool) -> Tensor:
    """The index of the extreme; without a dimension, the row-major index in the whole tensor."""
    if dim is not None or not x.shape:
        return _index_of(builder, x, op, dimensions(x, dim), keepdim)
    flat = builder.reshape(x, (x.size,))
    return builder.reshape(_index_of(builder, flat, op, [0], False), builder.meta.shape)
