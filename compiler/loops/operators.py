"""The scalar operators of an expression: name, arity, weight. One table for every stage.

Operands and result have the dtype that the `Op` states, with these exceptions: comparisons,
`isnan`, `isinf` and `signbit` return bool, and their operands share one dtype; `where` takes a bool
first; `convert` takes any dtype. No operator promotes: lowering inserts the `convert`s that ATen's
type promotion requires. 16-bit floats are computed in float32 and rounded when stored, or when the
user converts explicitly (`rounded`); a `convert` that is widened again may be dropped. NaN and
signed zeros behave as in ATen.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.loops.dtypes import FLOATS, limits
from tcw.compiler.loops.expressions import Const


@dataclass(frozen=True, slots=True)
class Operator:
    """One scalar operator."""

    name: str
    arity: int
    weight: int
    """Rough cost of recomputing the operator, in simple instructions per element."""
    boolean: bool = False
    """The result is bool, whatever the operands."""


def _table(*rows: Operator) -> dict[str, Operator]:
    return {row.name: row for row in rows}


OPERATORS = _table(
    # arithmetic; integers wrap
    Operator("add", 2, 1),
    Operator("sub", 2, 1),
    Operator("mul", 2, 1),
    Operator("neg", 1, 1),
    Operator("abs", 1, 1),
    Operator("fma", 3, 1),  # a*b+c, rounded once
    Operator("div", 2, 4),  # floats: true division
    Operator("floor_divide", 2, 8),  # rounds toward minus infinity; integers and floats, as in ATen
    Operator("trunc_divide", 2, 6),  # integers: C's division; floats: trunc(a/b)
    Operator("remainder", 2, 8),  # sign of the divisor, like Python's %
    Operator("fmod", 2, 8),  # sign of the dividend, like C's
    Operator("reciprocal", 1, 4),
    Operator("sign", 1, 2),  # -1, 0 or 1; 0 for NaN, as in ATen
    Operator("maximum", 2, 2),  # NaN wins
    Operator("minimum", 2, 2),  # NaN wins
    Operator("fmax", 2, 2),  # NaN loses
    Operator("fmin", 2, 2),
    Operator("copysign", 2, 2),
    Operator("hypot", 2, 12),
    Operator("ldexp", 2, 4),
    # rounding
    Operator("floor", 1, 1),
    Operator("ceil", 1, 1),
    Operator("trunc", 1, 1),
    Operator("round", 1, 1),  # half to even
    # comparison
    Operator("eq", 2, 1, True),
    Operator("ne", 2, 1, True),
    Operator("lt", 2, 1, True),
    Operator("le", 2, 1, True),
    Operator("gt", 2, 1, True),
    Operator("ge", 2, 1, True),
    Operator("isnan", 1, 1, True),
    Operator("isinf", 1, 1, True),
    Operator("signbit", 1, 1, True),
    # selection and conversion
    Operator("where", 3, 1),
    Operator("convert", 1, 1),
    Operator("rounded", 1, 2),  # a 16-bit float that the user asked for: never kept wider
    # bits and booleans: on bool, the logical operators
    Operator("bitwise_and", 2, 1),
    Operator("bitwise_or", 2, 1),
    Operator("bitwise_xor", 2, 1),
    Operator("bitwise_not", 1, 1),
    Operator("shift_left", 2, 1),
    Operator("shift_right", 2, 1),
    # roots, exponentials, logarithms
    Operator("sqrt", 1, 4),
    Operator("rsqrt", 1, 6),
    Operator("exp", 1, 8),
    Operator("exp2", 1, 8),
    Operator("expm1", 1, 12),
    Operator("log", 1, 10),
    Operator("log2", 1, 10),
    Operator("log10", 1, 10),
    Operator("log1p", 1, 12),
    Operator("pow", 2, 24),
    # trigonometric and hyperbolic
    Operator("sin", 1, 12),
    Operator("cos", 1, 12),
    Operator("tan", 1, 20),
    Operator("asin", 1, 20),
    Operator("acos", 1, 20),
    Operator("atan", 1, 20),
    Operator("atan2", 2, 24),
    Operator("sinh", 1, 20),
    Operator("cosh", 1, 20),
    Operator("tanh", 1, 10),
    Operator("asinh", 1, 24),
    Operator("acosh", 1, 24),
    Operator("atanh", 1, 24),
    # special functions
    Operator("sigmoid", 1, 12),
    Operator("erf", 1, 12),
    Operator("erfc", 1, 24),
)


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
