"""What an operation combines with any element without changing it."""

from __future__ import annotations

from tcw.compiler.loops.dtypes import FLOATS, limits
from tcw.compiler.loops.expressions import Const


def identity(op: str, dtype: str) -> Const:
    """The result of an empty reduction."""
    if op in ("any", "all"):
        return Const(op == "all", "bool")
    if op in ("max", "min"):
        if dtype in FLOATS:
            return Const(float("-inf" if op == "max" else "inf"), dtype)
        if dtype == "bool":
            return Const(op == "min", dtype)
        least, greatest = limits(dtype)
        return Const(least if op == "max" else greatest, dtype)
    number = 1 if op == "prod" else 0
    if dtype == "bool":
        return Const(bool(number), dtype)
    return Const(float(number) if dtype in FLOATS else number, dtype)
