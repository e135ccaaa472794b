"""Elementary functions: a polynomial for vectors if there is one, else SLEEF's, else libm's.

The polynomials are within 2 ulp and match ATen's results at the edges. They are faster than SLEEF's
functions, whose calls also keep the loop's values from staying in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import (
    arcs,
    arithmetic,
    circular,
    error_functions,
    exponentials,
    hyperbolic,
    logarithms,
    powers,
    sleef,
    wide_logarithms,
)

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

Body = Callable[["Lanes", str], str]


def _of_both(bodies: Mapping[str, Callable[..., str]]) -> dict[tuple[str, str], Body]:
    """Bodies that are written for either float."""
    return {
        (op, held): partial(body, held=held)
        for op, body in bodies.items()
        for held in ("float32", "float64")
    }


_BODIES: dict[tuple[str, str], Body] = {
    **_of_both(exponentials.WIDE),
    **_of_both({"atanh": wide_logarithms.atanh}),
    ("erf", "float32"): exponentials.erf,
    ("erf_quick", "float32"): exponentials.erf_quick,
    ("log", "float32"): logarithms.log,
    ("log", "float64"): wide_logarithms.log,
    ("log2", "float32"): logarithms.log2,
    ("log10", "float32"): logarithms.log10,
    ("log1p", "float32"): logarithms.log1p,
    ("log1p", "float64"): wide_logarithms.log1p,
    ("pow", "float32"): powers.body,
}
"""Operator and dtype -> the body of its function."""
_FUSED: dict[tuple[str, str], Body] = {
    **_of_both({op: partial(circular.sine, op=op) for op in ("sin", "cos")}),
    **_of_both({"tan": circular.tangent, "asin": arcs.asin, "acos": arcs.acos}),
    **_of_both({"atan": arcs.atan, "atan2": arcs.atan2, "erfc": error_functions.erfc}),
    **_of_both({"sinh": hyperbolic.sinh, "cosh": hyperbolic.cosh}),
    **_of_both({"asinh": hyperbolic.asinh, "acosh": hyperbolic.acosh}),
    ("erf", "float64"): error_functions.erf,
    ("log2", "float64"): wide_logarithms.log2,
    ("log10", "float64"): wide_logarithms.log10,
}
"""Those that need the instruction of a fused multiply-add."""
_PARAMETERS = {"atan2": ("a", "b"), "pow": ("x", "y")}
"""Of functions with more than `x`."""


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if there is no such function."""
    return (
        _polynomial(lanes, op, held) or sleef.function(lanes, op, held) or _of_libm(lanes, op, held)
    )


def _polynomial(lanes: Lanes, op: str, held: str) -> str | None:
    body = _BODIES.get((op, held)) or (_FUSED.get((op, held)) if lanes.isa.fma else None)
    if body is None or lanes.count == 1:
        return None
    register = lanes.type(held)
    parameters = ", ".join(f"{register} {name}" for name in _PARAMETERS.get(op, ("x",)))
    return arithmetic.function(lanes, op, parameters, register, body(lanes, register))


_LIBM_UNARY = frozenset(
    (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
        *("sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("erf", "erfc"),
    )
)
_LIBM_BINARY = frozenset({"pow", "atan2", "hypot"})


def _of_libm(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call, or None if libm has no such function."""
    register, end = lanes.type(held), "f" if held == "float32" else ""
    op = "exp" if op.startswith("exp_nonpositive") else op
    if op == "sigmoid":
        exp = sleef.function(lanes, "exp", held) or _of_libm(lanes, "exp", held)
        assert exp is not None
        body = f"return 1.0{end} / (1.0{end} + {exp.format('-x')});"
        return arithmetic.function(lanes, op, f"{register} x", register, body)
    if op not in _LIBM_UNARY and op not in _LIBM_BINARY:
        return None
    if lanes.count == 1:
        return f"__builtin_{op}{end}({'{0}, {1}' if op in _LIBM_BINARY else '{0}'})"
    if op in _LIBM_BINARY:
        parameters, operands = f"{register} a, {register} b", "a[k], b[k]"
    else:
        parameters, operands = f"{register} x", "x[k]"
    each = arithmetic.loop(lanes, register, f"__builtin_{op}{end}({operands})")
    return arithmetic.function(lanes, op, parameters, register, each, "OUTLINE")
