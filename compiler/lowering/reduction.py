"""Sums, products, extremes, quantifiers, means, variances and norms over dimensions.

16-bit floats are accumulated in float32, integers in the dtype of the result (int64 for sums).
A variance is a mean and a second reduction over the squared distances from it: the row is still
near, and two passes beat Welford's recurrence. Sources: aten/src/ATen/native/ReduceOps.cpp,
native/cpu/SumKernel.cpp, ReduceOpsKernel.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from compiler.loops.dtypes import compute_dtype
from compiler.loops.expressions import SizeOf
from compiler.loops.graph import Reduce, ReduceOp
from compiler.loops.layouts import Shape, row_major
from compiler.loops.sizes import Size, product
from compiler.lowering.builder import Builder, reading_order
from compiler.lowering.elements import (
    Element,
    apply,
    eq,
    exp,
    formula_map,
    isnan,
    larger,
    log,
    ne,
    number,
    sqrt,
    where,
)
from compiler.lowering.promotion import Number
from compiler.lowering.registry import NoLowering, lowers
from compiler.lowering.tensors import Meta, Tensor

Dims = int | Sequence[int] | None


def dimensions(tensor: Tensor, dim: Dims) -> list[int]:
    """The dimensions that an argument of ATen names: all of them for None and []."""
    rank = len(tensor.shape)
    if dim is None or dim == [] or dim == () or not rank:
        return list(range(rank))
    return sorted({d % rank for d in ([dim] if isinstance(dim, int) else dim)})


def count(tensor: Tensor, dims: Sequence[int]) -> Size:
    """How many elements are reduced to one."""
    return product(tensor.shape[d] for d in dims)


def size_element(size: Size, dtype: str) -> Element:
    """A size as an element of a float dtype."""
    return number(size, dtype) if isinstance(size, int) else Element(SizeOf(size)).to(dtype)


def over_count(total: Element, size: Size) -> Element:
    return total / size if isinstance(size, int) else total / size_element(size, total.dtype)


def reduce_formula(
    builder: Builder,
    op: ReduceOp,
    formula: Callable[..., Element],
    operands: Sequence[Tensor],
    dims: Sequence[int],
    *,
    keepdim: bool,
    compute: str,
    dtype: str,
    name: str = "",
) -> Tensor:
    """A reduction of a formula over tensors that broadcast to the first one's shape."""
    first = operands[0]
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
    """A reduction over no dimension: each element by itself."""
    meta = dense(operands[0].shape, dtype)
    if op in ("argmax", "argmin"):
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
    """The operation's identity; extremes have none, and ATen lets them pass only if empty."""
    whole = tuple(1 if d in dims else size for d, size in enumerate(first.shape))
    shape = whole if keepdim else tuple(s for d, s in enumerate(first.shape) if d not in dims)
    meta = dense(shape, dtype)
    if op not in ("sum", "prod", "any", "all") and 0 not in shape:
        raise NoLowering(f"{op} of no element")
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
    """A map over the output from reductions' values, whose shape it has but for ones."""
    meta = meta or builder.meta
    shaped = [builder.reshape(operand, meta.shape) for operand in operands]
    return formula_map(builder, formula, shaped, compute=compute, meta=meta, name=name)


def dense(shape: Shape, dtype: str) -> Meta:
    """A row-major tensor that only the graph itself sees."""
    return Meta(shape, row_major(shape).strides, dtype)


def _same(x: Element) -> Element:
    return x


def _truth(x: Element) -> Element:
    return x.to("bool")


@lowers("sum")
def total(
    builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return _sum(builder, x, dim, keepdim, _same)


@lowers("nansum")
def total_without_nan(
    builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return _sum(builder, x, dim, keepdim, lambda e: where(isnan(e), 0, e) if e.is_float else e)


def _sum(
    builder: Builder, x: Tensor, dim: Dims, keepdim: bool, formula: Callable[[Element], Element]
) -> Tensor:
    wanted = builder.meta.dtype
    return reduce_formula(
        builder,
        "any" if wanted == "bool" else "sum",
        formula,
        (x,),
        dimensions(x, dim),
        keepdim=keepdim,
        compute=compute_dtype(wanted),
        dtype=wanted,
    )


@lowers("prod.default")
def product_of_all(builder: Builder, x: Tensor, dtype: Any = None) -> Tensor:
    return _product(builder, x, None, False)


@lowers("prod.dim_int")
def product_over(
    builder: Builder, x: Tensor, dim: Dims, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return _product(builder, x, dim, keepdim)


def _product(builder: Builder, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    wanted = builder.meta.dtype
    return reduce_formula(
        builder,
        "all" if wanted == "bool" else "prod",
        _same,
        (x,),
        dimensions(x, dim),
        keepdim=keepdim,
        compute=compute_dtype(wanted),
        dtype=wanted,
    )


@lowers("mean.default")
def mean_of_all(builder: Builder, x: Tensor, dtype: Any = None) -> Tensor:
    return _mean(builder, x, None, False)


@lowers("mean.dim")
def mean(
    builder: Builder, x: Tensor, dim: Dims, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return _mean(builder, x, dim, keepdim)


def _mean(builder: Builder, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    compute = compute_dtype(builder.meta.dtype)
    dims = dimensions(x, dim)
    summed = reduce_formula(
        builder, "sum", _same, (x,), dims, keepdim=True, compute=compute, dtype=compute
    )
    return finish(builder, lambda s: over_count(s, count(x, dims)), (summed,), compute)


def extreme(
    builder: Builder, x: Tensor, op: ReduceOp, dims: Sequence[int], keepdim: bool
) -> Tensor:
    """The greatest or least element; of bool it is whether any or all are true."""
    logical: ReduceOp = "any" if op == "max" else "all"
    return reduce_formula(
        builder,
        logical if x.dtype == "bool" else op,
        _same,
        (x,),
        dims,
        keepdim=keepdim,
        compute=compute_dtype(x.dtype),
        dtype=x.dtype,
    )


@lowers("amax")
def amax(builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return extreme(builder, x, "max", dimensions(x, dim), keepdim)


@lowers("amin")
def amin(builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return extreme(builder, x, "min", dimensions(x, dim), keepdim)


@lowers("max.default")
def maximum_of_all(builder: Builder, x: Tensor) -> Tensor:
    return extreme(builder, x, "max", dimensions(x, None), False)


@lowers("min.default")
def minimum_of_all(builder: Builder, x: Tensor) -> Tensor:
    return extreme(builder, x, "min", dimensions(x, None), False)


@lowers("aminmax")
def aminmax(
    builder: Builder, x: Tensor, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = dimensions(x, dim)
    return extreme(builder, x, "min", dims, keepdim), extreme(builder, x, "max", dims, keepdim)


@lowers("max.dim")
def maximum_over(
    builder: Builder, x: Tensor, dim: int, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = dimensions(x, dim)
    index = _index_of(builder, x, "argmax", dims, keepdim)
    return extreme(builder, x, "max", dims, keepdim), index


@lowers("min.dim")
def minimum_over(
    builder: Builder, x: Tensor, dim: int, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = dimensions(x, dim)
    index = _index_of(builder, x, "argmin", dims, keepdim)
    return extreme(builder, x, "min", dims, keepdim), index


def _index_of(
    builder: Builder, x: Tensor, op: ReduceOp, dims: Sequence[int], keepdim: bool
) -> Tensor:
    compute = "uint8" if x.dtype == "bool" else compute_dtype(x.dtype)
    return reduce_formula(
        builder, op, _same, (x,), dims, keepdim=keepdim, compute=compute, dtype="int64"
    )


@lowers("argmax")
def argmax(builder: Builder, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _argument(builder, x, "argmax", dim, keepdim)


@lowers("argmin")
def argmin(builder: Builder, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _argument(builder, x, "argmin", dim, keepdim)


def _argument(builder: Builder, x: Tensor, op: ReduceOp, dim: int | None, keepdim: bool) -> Tensor:
    """Without a dimension, the row-major index in the whole tensor."""
    if dim is not None or not x.shape:
        return _index_of(builder, x, op, dimensions(x, dim), keepdim)
    flat = builder.reshape(x, (x.size,))
    return builder.reshape(_index_of(builder, flat, op, [0], False), builder.meta.shape)


@lowers("any")
def exists(builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return _quantifier(builder, x, "any", dim, keepdim)


@lowers("all")
def every(builder: Builder, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return _quantifier(builder, x, "all", dim, keepdim)


def _quantifier(builder: Builder, x: Tensor, op: ReduceOp, dim: Dims, keepdim: bool) -> Tensor:
    """Of uint8 ATen answers uint8."""
    found = reduce_formula(
        builder,
        op,
        _truth,
        (x,),
        dimensions(x, dim),
        keepdim=keepdim,
        compute=compute_dtype(x.dtype),
        dtype="bool",
    )
    return found if builder.meta.dtype == "bool" else finish(builder, _same, (found,), "")


@lowers("count_nonzero")
def count_nonzero(builder: Builder, x: Tensor, dim: Dims = None) -> Tensor:
    return reduce_formula(
        builder,
        "sum",
        lambda e: ne(e, 0).to("int64"),
        (x,),
        dimensions(x, dim),
        keepdim=False,
        compute=compute_dtype(x.dtype),
        dtype="int64",
    )


def moments(
    builder: Builder, x: Tensor, dims: Sequence[int], compute: str
) -> tuple[Tensor, Tensor]:
    """The mean and the sum of squared distances from it, both with the dimensions kept as 1."""
    summed = reduce_formula(
        builder, "sum", _same, (x,), dims, keepdim=True, compute=compute, dtype=compute, name="sum"
    )
    centre = finish(
        builder,
        lambda s: over_count(s, count(x, dims)),
        (summed,),
        compute,
        dense(summed.shape, compute),
        "mean",
    )
    return centre, reduce_formula(
        builder,
        "sum",
        lambda e, m: (e - m) * (e - m),
        (x, centre),
        dims,
        keepdim=True,
        compute=compute,
        dtype=compute,
        name="squares",
    )


def _variance(x: Tensor, dims: Sequence[int], correction: Number | None) -> Callable[..., Element]:
    """Sum of squares -> variance; 0 in place of a negative number of degrees of freedom."""
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
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    _, squares = moments(builder, x, dims, compute)
    return finish(builder, _variance(x, dims, correction), (squares,), compute)


@lowers("std.correction")
def standard_deviation(
    builder: Builder,
    x: Tensor,
    dim: Dims = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Tensor:
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    _, squares = moments(builder, x, dims, compute)
    of = _variance(x, dims, correction)
    return finish(builder, lambda s: sqrt(of(s)), (squares,), compute)


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
    return answer, finish(builder, _same, (centre,), compute)


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
    """(sum |x|**order) ** (1/order); for infinite orders the extremes, for 0 a count."""
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
    """From the largest term on; an infinite one is not taken off."""
    compute, dims = compute_dtype(builder.meta.dtype), dimensions(x, dim)
    top = reduce_formula(
        builder, "max", _same, (x,), dims, keepdim=True, compute=compute, dtype=compute, name="amax"
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
