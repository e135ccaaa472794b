"""Copies. A clone that keeps dtype and memory order is the same value; any other copy is a map.

`copy_` is a mutation: a store into the memory that the argument views.
"""

from __future__ import annotations

from tcw.compiler.loops.dtypes import REDUCED
from tcw.compiler.loops.expressions import Expression, Op, convert
from tcw.compiler.loops.layouts import same_strides
from tcw.compiler.lowering.builder import Builder, logical_strides, placed, storage_order
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor
from tcw.compiler.lowering.views import piece


def as_promised(builder: Builder, tensor: Tensor) -> Tensor:
    """The tensor if its memory layout matches the output's, else a copy that does."""
    meta = builder.meta
    if tensor.dtype != meta.dtype or tensor.shape != meta.shape:
        return builder.copy(tensor, meta)
    if 0 in tensor.shape:
        return tensor
    operand = placed(tensor)
    if operand is None or tensor.value in builder.offsets or tensor.value in builder.written:
        return builder.copy(tensor, meta)
    same = operand.offset == 0 and same_strides(meta.shape, operand.strides, meta.strides)
    return tensor if same else builder.copy(tensor, meta)


@lowers("clone", "lift_fresh_copy", "contiguous", "prims.clone")
def clone(builder: Builder, tensor: Tensor, *, memory_format: object = None) -> Tensor:
    if not builder.read_in_place() and (repeats := _repeats(builder, tensor)):
        return _repeated(builder, tensor, repeats)
    return as_promised(builder, tensor)


MOST_REPEATS = 4
"""Interleaved stores that pay; more are an element at a time."""


def _repeats(builder: Builder, tensor: Tensor) -> int:
    """How many neighbours in the output's memory are the same element, if they are few; else 0."""
    shape, strides = builder.meta.shape, logical_strides(tensor)
    if not shape or strides is None or tensor.shape != shape or 0 in shape:
        return 0
    last, count = len(shape) - 1, shape[-1]
    if not isinstance(count, int) or not 2 <= count <= MOST_REPEATS or strides[last] != 0:
        return 0
    return count if storage_order(shape, builder.meta.strides)[-1] == last else 0


def _repeated(builder: Builder, tensor: Tensor, repeats: int) -> Tensor:
    """One store for each repeat: their elements interleave, and are written as whole vectors."""
    whole = builder.buffer()
    last = len(tensor.shape) - 1
    order = storage_order(builder.meta.shape, builder.meta.strides)
    for repeat in range(repeats):
        target = piece(builder, whole, last, repeat, 1)
        builder.store(target, piece(builder, tensor, last, repeat, 1), order=order)
    return whole


@lowers("_to_copy", "to")
def to_copy(builder: Builder, tensor: Tensor, *_: object, **options: object) -> Tensor:
    """Convert to another dtype or memory format on the same device."""
    if options.get("pin_memory"):
        raise NoLowering("pinned memory")
    meta = builder.meta
    if meta.dtype in REDUCED and tensor.dtype in ("float32", "float64") and _asked(builder):
        return builder.pointwise(
            [tensor], lambda x: rounded_to(x, meta.dtype), compute=tensor.dtype
        )
    return as_promised(builder, tensor)


def _asked(builder: Builder) -> bool:
    """Whether the user asked for the conversion. The conversion at the end of a decomposed
    operation may be skipped, leaving the value wide."""
    return str(builder.taken_from).startswith(("aten._to_copy", "None"))


def rounded_to(expression: Expression, dtype: str) -> Expression:
    """The 16-bit value that the user asked for, rounded even if it is widened again."""
    return Op("rounded", (convert(expression, dtype),), dtype)


@lowers("copy")
def copy(builder: Builder, old: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """The source in the shape, dtype and memory order of the tensor that it replaces."""
    return as_promised(builder, source)


@lowers("copy_")
def copy_(builder: Builder, target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    if source == target or 0 in target.shape:
        return target
    if not builder.is_storable(target.value):
        raise NoLowering("the target is neither an input nor a buffer")
    if source.value == target.value:
        source = builder.copy(source)
    builder.about_to_write(target.value)
    strides = logical_strides(target)
    order = storage_order(target.shape, strides) if strides else None
    builder.store(target, source, order=order)
    return target
