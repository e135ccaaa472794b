"""Cumulative sums, products and extremes along one dimension.

On the CPU, ATen accumulates float32 and 16-bit floats in float64, and so does this module. Source:
aten/src/ATen/native/cpu/ReduceOpsKernel.cpp, native/ReduceOps.cpp (cummax_helper).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from tcw.compiler.loops.dtypes import FLOATS, compute_dtype
from tcw.compiler.loops.expressions import Expression
from tcw.compiler.loops.graph import Scan, ScanOp
from tcw.compiler.lowering.builder import Builder, storage_order, stored_view
from tcw.compiler.lowering.elements import Element, eq, isnan, position, where
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Meta, Tensor


def scan(
    builder: Builder, op: ScanOp, expression: Expression, dim: int, meta: Meta, name: str = ""
) -> Tensor:
    """A scan of an expression written for the output's storage order."""
    order = storage_order(meta.shape, meta.strides)
    domain = tuple(meta.shape[d] for d in order)
    if 0 in domain:
        return builder.buffer(meta, name)
    node = Scan(
        builder.fresh(name or builder.node),
        meta.dtype,
        op,
        domain,
        order.index(dim),
        expression,
        origins=(builder.node,),
    )
    builder.graph.nodes.append(node)
    return Tensor(node.name, stored_view(meta.shape, order), meta.shape, meta.dtype)


def loaded(builder: Builder, x: Tensor, meta: Meta) -> Element:
    return Element(builder.load(x, meta.shape, storage_order(meta.shape, meta.strides)))


def _accumulate(op: ScanOp, builder: Builder, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    meta = builder.meta
    if meta.dtype == "bool":
        raise NoLowering("a running total in bool")
    # an operation with a dtype argument rounds to it before accumulating
    element = loaded(builder, x, meta).to(compute_dtype(meta.dtype))
    if x.dtype != meta.dtype:
        element = element.to(meta.dtype)
    if not x.shape:
        return builder.map(element.to(meta.dtype).expression)
    wide = element.to("float64") if meta.dtype in FLOATS else element
    return scan(builder, op, wide.expression, dim % len(x.shape), meta)


lowers("cumsum")(partial(_accumulate, "sum"))
lowers("cumprod")(partial(_accumulate, "prod"))


def _extremes(op: ScanOp, builder: Builder, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The index is the last position that equals the running extreme or is NaN."""
    values, indices = builder.metas
    assert values is not None
    assert indices is not None
    if not x.shape:
        raise NoLowering("running extremes of a number")
    along = dim % len(x.shape)
    compute = "uint8" if x.dtype == "bool" else compute_dtype(x.dtype)
    running = replace(values, dtype=compute) if x.dtype == "bool" else values
    best = scan(builder, op, loaded(builder, x, values).to(compute).expression, along, running)
    order = storage_order(indices.shape, indices.strides)
    element = loaded(builder, x, indices).to(compute)
    reached = eq(element, loaded(builder, best, indices).to(compute))
    if element.is_float:
        reached = reached | isnan(element)
    place = where(reached, position(indices.shape, along, order), -1)
    where_reached = scan(builder, "max", place.expression, along, indices, "index")
    return (builder.copy(best, values) if x.dtype == "bool" else best), where_reached


lowers("cummax")(partial(_extremes, "max"))
lowers("cummin")(partial(_extremes, "min"))
