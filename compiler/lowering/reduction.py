"""Reductions of formulas over dimensions; sums, products, means, any, all, counts, extremes.

16-bit floats are accumulated in float32, integers in the dtype of the result (int64 for sums).
Among equal extremes the first one wins, and NaN wins over all. Variances are in `normalization.py`.
Sources: aten/src/ATen/native/ReduceOps.cpp, native/cpu/{Sum,ReduceOps,TensorCompare}Kernel.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.graph import ARG, Reduce, ReduceOp
from tcw.compiler.loops.sizes import Size, product
from tcw.compiler.lowering.builder import Builder, reading_order
from tcw.compiler.lowering.elements import Element, formula_map, size_element
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor

Dims = int | Sequence[int] | None


def dimensions(tensor: Tensor, dim: Dims) -> list[int]:
    """The dimensions that an ATen argument selects: all of them for None and []."""
    rank = len(tensor.shape)
    if dim is None or dim == [] or dim == () or not rank:
        return list(range(rank))
    return sorted({d % rank for d in ([dim] if isinstance(dim, int) else dim)})


def count(tensor: Tensor, dims: Sequence[int]) -> Size:
    """The number of elements that are reduced to one."""
    return product(tensor.shape[d] for d in dims)


def over_count(total: Element, size: Size) -> Element:
    return total / size if isinstance(size, int) else total / size_element(size, total.dtype)


def reduce_formula(
    builder: Builder,
    op: ReduceOp,
    formula: Callable[..., Element],
    operands: Sequence[Tensor],
    dims: Sequence[int],
    compute: str,
    *,
    keepdim: bool = False,
    dtype: str = "",
    name: str = "",
) -> Tensor:
    """A reduction of a formula over tensors that broadcast to the first one's shape. `compute`: the
    dtype in which it accumulates, and that of the result if `dtype` is not another one."""
    first, dtype = operands[0], dtype or compute
    if not dims:
        return _nothing_reduced(builder, op, formula, operands, compute, dtype, name)
    if 0 in first.shape:
        return _no_elements(builder, op, first, dims, keepdim, dtype, name)
    order = reading_order(first)
    elements = [Element(builder.load(t, first.shape, order)).to(compute) for t in operands]
    node = Reduce(
        builder.fresh(name or builder.node),
        dtype,
        op,
        tuple(first.shape[d] for d in order),
        tuple(d in dims for d in order),
        formula(*elements).expression,
        (builder.node,),
    )
    builder.graph.nodes.append(node)
    return builder.kept(node.name, first.shape, order, set(dims), keepdim, dtype)


def _nothing_reduced(
    builder: Builder,
    op: ReduceOp,
    formula: Callable[..., Element],
    operands: Sequence[Tensor],
    compute: str,
    dtype: str,
    name: str,
) -> Tensor:
    """A reduction over no dimensions: a map of the formula."""
    meta = builder.contiguous(operands[0].shape, dtype)
    if op in ARG:
        return formula_map(builder, lambda: 0, (), meta=meta, name=name)
    return formula_map(builder, formula, operands, compute=compute, meta=meta, name=name)


def _no_elements(
    builder: Builder,
    op: ReduceOp,
    first: Tensor,
    dims: Sequence[int],
    keepdim: bool,
    dtype: str,
    name: str,
) -> Tensor:
    """The operation's identity. Extremes have none; ATen requires an empty result for them."""
    whole = tuple(1 if d in dims else size for d, size in enumerate(first.shape))
    shape = whole if keepdim else tuple(s for d, s in enumerate(first.shape) if d not in dims)
    meta = builder.contiguous(shape, dtype)
    if op not in ("sum", "prod", "any", "all") and 0 not in shape:
        raise NoLowering(f"{op} of no elements")
    identity = 1 if op in ("prod", "all") else 0
    return formula_map(builder, lambda: identity, (), meta=meta, name=name)


def finish(
    builder: Builder,
    formula: Callable[..., Element],
    operands: Sequence[Tensor],
    compute: str,
    meta: Meta | None = None,
    name: str = "",
) -> Tensor:
    """A map over the output from reduced values, which may differ in dimensions of size 1."""
    meta = meta or builder.meta
    shaped = [builder.reshape(operand, meta.shape) for operand in operands]
    return formula_map(builder, formula, shaped, compute=compute, meta=meta, name=name)


def same(x: Element) -> Element:
    return x


_OF_BOOLEANS: dict[ReduceOp, ReduceOp] = {"sum": "any", "prod": "all"}


def _total(
    op: ReduceOp,
    builder: Builder,
    x: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Tensor:
    wanted, dims = builder.meta.dtype, dimensions(x, dim)
    op, compute = _OF_BOOLEANS[op] if wanted == "bool" else op, compute_dtype(wanted)
    return reduce_formula(builder, op, same, (x,), dims, compute, keepdim=keepdim, dtype=wanted)


lowers("sum")(partial(_total, "sum"))
lowers("prod.default", "prod.dim_int")(partial(_total, "prod"))


@lowers("mean.default", "mean.dim")
def mean(
    builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    compute = compute_dtype(builder.meta.dtype)
    dims = dimensions(x, dim)
    summed = reduce_formula(builder, "sum", same, (x,), dims, compute, keepdim=True)
    return finish(builder, lambda s: over_count(s, count(x, dims)), (summed,), compute)


def _quantifier(
    op: ReduceOp, builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False
) -> Tensor:
    """Whether any or all are true. As in ATen, the result for uint8 is uint8."""
    dims, compute = dimensions(x, dim), compute_dtype(x.dtype)
    tensor = reduce_formula(
        builder, op, lambda x: x.to("bool"), (x,), dims, compute, keepdim=keepdim, dtype="bool"
    )
    return tensor if builder.meta.dtype == "bool" else finish(builder, same, (tensor,), "")


lowers("any")(partial(_quantifier, "any"))
lowers("all")(partial(_quantifier, "all"))


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
