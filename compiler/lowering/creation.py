"""Tensors created without inputs: constants and ranges.

Memory that ATen leaves uninitialised is as it is where only the caller gets it, and zero where the
graph reads it: a constant, of which nothing is left once it is written over. What assignments to
slices leave out is as it is too. Random numbers are in `random.py`.
Sources: aten/src/ATen/native/TensorFactories.cpp, native/cpu/RangeFactoriesKernel.cpp.
"""

from __future__ import annotations

from typing import Any

from tcw.compiler.loops.dtypes import FLOATS
from tcw.compiler.loops.expressions import SizeOf
from tcw.compiler.loops.sizes import Size, Symbolic
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import Element, formula_map, position
from tcw.compiler.lowering.promotion import Number
from tcw.compiler.lowering.registry import lowers
from tcw.compiler.lowering.tensors import Tensor


def filled(builder: Builder, value: Number | Size) -> Tensor:
    return formula_map(builder, lambda v: v, (value,))


@lowers("full", "full_like")
def full(builder: Builder, like: Any, *args: Any, **keywords: Any) -> Tensor:
    """The value is the last positional argument: `full(size, v)`, `new_full(x, size, v)`."""
    return filled(builder, args[-1] if args else keywords["fill_value"])


@lowers("scalar_tensor", "prims.scalar_tensor")
def scalar_tensor(builder: Builder, value: Number | Size, **keywords: Any) -> Tensor:
    return filled(builder, value)


@lowers("empty.memory_format", "empty_permuted", "empty_strided", "new_empty_strided")
def empty(builder: Builder, *args: Any, **keywords: Any) -> Tensor:
    if builder.only_returned():
        return builder.buffer()
    memory = filled(builder, 0)
    builder.unset.add(memory.value)
    return memory


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
