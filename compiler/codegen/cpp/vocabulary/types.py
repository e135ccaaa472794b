"""Types of the generated C++ in registers and in memory, and literals of their values."""

from __future__ import annotations

import math
import struct

from tcw.compiler.loops.dtypes import FLOATS, INTEGERS, compute_dtype, limits, rounded

CODES = {
    "float64": "f64",
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
}
"""The dtypes with vector types. A vector's type is the code and the lane count: f32x16."""

SCALARS = {
    "float64": "double",
    "float32": "float",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
STORAGE = {**SCALARS, "bfloat16": "bf16", "float16": "half"}
"""Element types in memory. bf16 and half are structs of their bits, to allow overloading loads."""

BITS = {"bfloat16": "int16", "float16": "int16", "bool": "int8"}
"""Integers that have the bits of elements whose registers are wider than their memory."""

UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long"}
SIGNED = {1: "signed char", 2: "short", 4: "int", 8: "long"}

DIVISION_BY_ZERO, INDEX_OUT_OF_RANGE = 1, 2
"""What a kernel stores in the low four bits of `*error`, which the launcher raises. For an index,
the next four bits select the error's wording (`SAYS`), and the bits above hold the dimension. The
second and third 8-byte numbers at `error` are the index and the size."""
SAYS = {"": 0, "index": 1, "gather": 2, "target": 3}

INFINITY = {"float32": "__builtin_inff()", "float64": "__builtin_inf()"}
NAN = {"float32": '__builtin_nanf("")', "float64": '__builtin_nan("")'}


def bits_of(number: float, dtype: str) -> int:
    """The bits of a boolean, or of a number rounded to a 16-bit float, as a signed integer."""
    if dtype == "bool":
        return int(bool(number))
    number = float(number)
    if number != number:
        return 0x7FC0 if dtype == "bfloat16" else 0x7E00
    held = rounded(number, dtype)
    packed = struct.pack("<e", held) if dtype == "float16" else struct.pack("<f", held)[2:]
    return int(struct.unpack("<h", packed)[0])


def _shortest(value: float, dtype: str) -> str:
    """The shortest decimal text that parses to exactly `value` rounded to `dtype`."""
    if dtype == "float64":
        return repr(value)
    single = struct.pack("f", value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("f", float(text)) == single:
            break
    return text if "." in text or "e" in text else text + ".0"


def literal(value: bool | int | float, dtype: str) -> str:
    """The exact C++ literal of `value` in the register type of `dtype`.

    A value that `dtype` cannot represent is converted as in ATen's fill: floats overflow to
    infinity, integers wrap.
    """
    if dtype == "bool":
        return "true" if value else "false"
    if dtype in FLOATS:
        dtype = compute_dtype(dtype)
        number = rounded(float(value), dtype)
        if math.isnan(number):
            return NAN[dtype]
        if math.isinf(number):
            return ("-" if number < 0 else "") + INFINITY[dtype]
        return _shortest(number, dtype) + ("f" if dtype == "float32" else "")
    assert dtype in INTEGERS, dtype
    low, high = limits(dtype)
    whole = (int(value) - low) % (high - low + 1) + low
    if dtype == "int64":
        return f"(-{2**63 - 1}L - 1)" if whole == low else f"{whole}L"
    if dtype == "int32":
        return f"(-{2**31 - 1} - 1)" if whole == low else str(whole)
    return f"({SCALARS[dtype]}){whole}"
