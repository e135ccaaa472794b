"""Functions without a polynomial or a vector function: calls of libm, lane by lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, sleef

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

UNARY = frozenset(
    (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
        *("sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("erf", "erfc", "lgamma"),
    )
)
BINARY = frozenset({"pow", "atan2", "hypot"})


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call, or None if libm has no such function."""
    register, end = lanes.type(held), "f" if held == "float32" else ""
    op = "exp" if op.startswith("exp_nonpositive") else op
    if op == "sigmoid":
        exp = sleef.function(lanes, "exp", held) or function(lanes, "exp", held)
        assert exp is not None
        body = f"return 1.0{end} / (1.0{end} + {exp.format('-x')});"
        return arithmetic.function(lanes, op, f"{register} x", register, body)
    if op not in UNARY and op not in BINARY:
        return None
    if lanes.count == 1:
        return f"__builtin_{op}{end}({'{0}, {1}' if op in BINARY else '{0}'})"
    if op in BINARY:
        parameters, operands = f"{register} a, {register} b", "a[k], b[k]"
    else:
        parameters, operands = f"{register} x", "x[k]"
    each = arithmetic.loop(lanes, register, f"__builtin_{op}{end}({operands})")
    return arithmetic.function(lanes, op, parameters, register, each, "OUTLINE")
