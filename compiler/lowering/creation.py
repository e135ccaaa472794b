"""Tensors created without inputs: constants, ranges, triangles.

Memory that ATen leaves uninitialised is as it is where only the caller gets it, and zero where the
graph reads it: a constant, of which nothing is left once it is written over. Random numbers are in
`random.py`.
Sources: aten/src/ATen/native/TensorFactories.cpp, native/cpu/RangeFactoriesKernel.cpp.
"""

from __future__ import annotations

from typing import Any

from compiler.loops.dtypes import FLOATS, compute_dtype
from compiler.loops.expressions import SizeOf
from compiler.loops.sizes import Size, Symbolic
from compiler.lowering.builder import Builder, storage_order
from compiler.lowering.elements import Element, eq, formula_map, position, where
from compiler.lowering.promotion import Number
from compiler.lowering.registry import lowers
from compiler.lowering.tensors import Tensor


def filled(builder: Builder, value: Number | Size) -> Tensor:
    return formula_map(builder, lambda v: v, (value,))


@lowers("full", "full_like", "new_full")
def full(builder: Builder, like: Any, *args: Any, **keywords: Any) -> Tensor:
    """The value is the last positional argument: `full(size, v)`, `new_full(x, size, v)`."""
    return filled(builder, args[-1] if args else keywords["fill_value"])


@lowers("scalar_tensor")
def scalar_tensor(builder: Builder, value: Number | Size, **keywords: Any) -> Tensor:
    return filled(builder, value)


@lowers("zeros", "zeros_like", "new_zeros", "zero")
def zeros(builder: Builder, *args: Any, **keywords: Any) -> Tensor:
    return filled(builder, 0)


@lowers("ones", "ones_like", "new_ones")
def ones(builder: Builder, *args: Any, **keywords: Any) -> Tensor:
    return filled(builder, 1)


@lowers(
    "empty.memory_format",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
)
def empty(builder: Builder, *args: Any, **keywords: Any) -> Tensor:
    return builder.buffer() if builder.only_returned() else filled(builder, 0)


@lowers("arange.start_step")
def arange(
    builder: Builder, start: Number | Size, end: Any, step: Number | Size = 1, **keywords: Any
) -> Tensor:
    return _range(builder, start, step)


@lowers("arange.start")
def arange_from(builder: Builder, start: Number | Size, end: Any, **keywords: Any) -> Tensor:
    return _range(builder, start, 1)


@lowers("arange.default")
def arange_to(builder: Builder, end: Any, **keywords: Any) -> Tensor:
    return _range(builder, 0, 1)


@lowers("prims.iota")
def iota(builder: Builder, length: Size, *, start: Size, step: Size, **keywords: Any) -> Tensor:
    return _range(builder, start, step)


def _range(builder: Builder, start: Number | Size, step: Number | Size) -> Tensor:
    """start + i*step. Floats are computed in float64 and then rounded, as in ATen's kernel."""
    compute = "float64" if builder.meta.dtype in FLOATS else "int64"
    shape = builder.meta.shape
    element = position(shape, 0, [0]).to(compute)
    if isinstance(step, Symbolic):
        element = element * Element(SizeOf(step)).to(compute)
    elif step != 1:
        element = element * step
    if isinstance(start, Symbolic):
        element = element + Element(SizeOf(start)).to(compute)
    elif start != 0:
        element = element + start
    return builder.map(element.to(builder.meta.dtype).expression)


@lowers("eye.default", "eye.m")
def eye(builder: Builder, *args: Any, **keywords: Any) -> Tensor:
    shape = builder.meta.shape
    order = storage_order(shape, builder.meta.strides)
    on_diagonal = eq(position(shape, 1, order), position(shape, 0, order))
    return builder.map(on_diagonal.to(builder.meta.dtype).expression)


@lowers("tril")
def lower_triangle(builder: Builder, x: Tensor, diagonal: Number | Size = 0) -> Tensor:
    return _triangle(builder, x, diagonal, lower=True)


@lowers("triu")
def upper_triangle(builder: Builder, x: Tensor, diagonal: Number | Size = 0) -> Tensor:
    return _triangle(builder, x, diagonal, lower=False)


def _triangle(builder: Builder, x: Tensor, diagonal: Number | Size, *, lower: bool) -> Tensor:
    """Keep one side of the diagonal: column - row is compared with it."""
    meta = builder.meta
    order = storage_order(meta.shape, meta.strides)
    rank = len(meta.shape)
    side = position(meta.shape, rank - 1, order) - position(meta.shape, rank - 2, order)
    border = Element(SizeOf(diagonal)) if isinstance(diagonal, Symbolic) else diagonal
    kept = side <= border if lower else side >= border
    element = Element(builder.load(x, meta.shape, order)).to(compute_dtype(x.dtype))
    return builder.map(where(kept, element, 0).to(meta.dtype).expression)
