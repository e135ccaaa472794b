"""ATen's type promotion, for operations whose output dtype does not determine how they compute.

Most operations compute in the dtype of their output, which the ATen graph states. Comparisons
return bool, so the dtype in which they compare follows from the operands. The rules are those of
`c10/core/ScalarType.h` and `aten/src/ATen/native/TypeProperties.cpp`: tensors with dimensions rank
above zero-dimensional ones, and those above Python numbers. A lower category never raises the dtype
of a higher one within the same kind (bool, integer, float).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import torch

from tcw.compiler.loops.dtypes import BYTES, FLOATS, REDUCED
from tcw.compiler.loops.sizes import Symbolic
from tcw.compiler.lowering.reals import Real, StoredNumber
from tcw.compiler.lowering.tensors import Tensor

Number = bool | int | float


@cache
def dtype_name(dtype: object) -> str:
    """`torch.float32` -> `float32`; a plain name is returned unchanged."""
    return str(dtype).removeprefix("torch.")


def promote(operands: Iterable[object]) -> str:
    """The dtype to which an operation promotes these tensors, numbers and sizes."""
    with_dimensions = without = numbers = ""
    for operand in operands:
        if isinstance(operand, Tensor):
            if operand.shape:
                with_dimensions = common(with_dimensions, operand.dtype)
            else:
                without = common(without, operand.dtype)
        elif isinstance(operand, bool):
            numbers = common(numbers, "bool")
        elif isinstance(operand, (int, Symbolic)) or is_whole(operand):
            numbers = common(numbers, "int64")
        elif isinstance(operand, (float, Real, StoredNumber)):
            numbers = common(numbers, dtype_name(torch.get_default_dtype()))
    return _over(with_dimensions, _over(without, numbers))


def is_whole(number: object) -> bool:
    """Whether the number is an item of an integer tensor."""
    return isinstance(number, StoredNumber) and number.tensor.dtype == "int64"


def _over(higher: str, lower: str) -> str:
    """The higher category's dtype, unless the lower category has a wider kind."""
    if not higher or not lower:
        return higher or lower
    if higher == "bool" or (higher not in FLOATS and lower in FLOATS):
        return common(higher, lower)
    return higher


def common(left: str, right: str) -> str:
    """The smallest dtype that holds both; "" means no dtype."""
    if left == right or not right or right == "bool":
        return left or right
    if not left or left == "bool":
        return right
    if (left in FLOATS) != (right in FLOATS):
        return left if left in FLOATS else right
    if left in REDUCED and right in REDUCED:
        return "float32"
    if "uint8" in (left, right):
        other = left if right == "uint8" else right
        return "int16" if other == "int8" else other
    return left if BYTES[left] > BYTES[right] else right
