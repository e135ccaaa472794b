"""What an operation combines with any element without changing it."""

from __future__ import annotations

from compiler.loops.dtypes import FLOATS
from compiler.loops.expressions import Const

_LIMITS = {"int64": 63, "int32": 31, "int16": 15, "int8": 7}
"""Bits of the largest integer."""


def identity(op: str, dtype: str) -> Const:
    """The result of an empty reduction."""
    if op in ("any", "all"):
        return Const(op == "all", "bool")
    if op in ("max", "min"):
        sign = -1 if op == "max" else 1
        if dtype in FLOATS:
            return Const(sign * float("inf"), dtype)
        if dtype == "bool":
            return Const(op == "min", dtype)
        if dtype == "uint8":
            return Const(0 if op == "max" else 255, dtype)
        top = 1 << _LIMITS[dtype]
        return Const(-top if op == "max" else top - 1, dtype)
    number = 1 if op == "prod" else 0
    if dtype == "bool":
        return Const(bool(number), dtype)
    return Const(float(number) if dtype in FLOATS else number, dtype)
