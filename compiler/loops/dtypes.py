"""Element types under torch's names, and the dtypes in which their arithmetic is done."""

from __future__ import annotations

import math
import struct

BYTES = {
    "float64": 8,
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Item size in bytes of each dtype that a loop can hold. Operations on other dtypes run on ATen."""
WIDEST_ITEM = 16
"""That of the widest of these others (complex128); used in estimates."""

FLOATS = frozenset({"float64", "float32", "bfloat16", "float16"})
INTEGERS = frozenset({"int64", "int32", "int16", "int8", "uint8"})
REDUCED = frozenset({"bfloat16", "float16"})
"""Stored in 16 bits, computed in float32."""


def compute_dtype(dtype: str) -> str:
    """The dtype of a register that holds a value of `dtype`: float32 for the 16-bit floats."""
    return "float32" if dtype in REDUCED else dtype


def limits(dtype: str) -> tuple[int, int]:
    """The least and greatest value of an integer dtype."""
    bits = 8 * BYTES[dtype]
    return (0, 2**bits - 1) if dtype == "uint8" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def rounded(number: float, dtype: str) -> float:
    """The number as a float of this dtype holds it: half to even, infinite beyond the greatest."""
    if dtype == "float64" or not math.isfinite(number):
        return number
    form = "<e" if dtype == "float16" else "<f"
    try:
        packed = struct.pack(form, number)
    except OverflowError:
        return math.copysign(math.inf, number)
    if dtype == "bfloat16":
        (word,) = struct.unpack("<I", packed)
        packed = struct.pack("<I", (word + 0x7FFF + (word >> 16 & 1)) & 0xFFFF0000)
    return float(struct.unpack(form, packed)[0])
