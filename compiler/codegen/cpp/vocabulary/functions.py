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
    gamma,
    hyperbolic,
    inverse_error,
    libm,
    logarithms,
    parts,
    powers,
    sleef,
    special_functions,
    wide_logarithms,
    zeta,
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
    **_of_both({"atanh": wide_logarithms.atanh, "digamma": gamma.digamma}),
    **_of_both({op: partial(parts.frexp, op=op) for op in ("frexp_mantissa", "frexp_exponent")}),
    ("erf", "float32"): exponentials.erf,
    ("erf_quick", "float32"): exponentials.erf_quick,
    ("log", "float32"): logarithms.log,
    ("log", "float64"): wide_logarithms.log,
    ("log2", "float32"): logarithms.log2,
    ("log10", "float32"): logarithms.log10,
    ("log1p", "float32"): logarithms.log1p,
    ("log1p", "float64"): wide_logarithms.log1p,
    ("pow", "float32"): powers.body,
    ("zeta", "float64"): zeta.zeta,
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
_PARAMETERS = {"atan2": ("a", "b"), "pow": ("x", "y"), "zeta": ("x", "q")}
"""Of functions with more than `x`."""


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if there is no such function."""
    if op == "erfcx":
        register = lanes.type(held)
        body = error_functions.erfcx(lanes, register, held)
        return arithmetic.function(lanes, op, f"{register} x", register, body)
    return (
        _polynomial(lanes, op, held)
        or sleef.function(lanes, op, held)
        or libm.function(lanes, op, held)
        or inverse_error.function(lanes, op, held)
        or special_functions.function(lanes, op, held)
    )


def _polynomial(lanes: Lanes, op: str, held: str) -> str | None:
    body = _BODIES.get((op, held)) or (_FUSED.get((op, held)) if lanes.isa.fma else None)
    if body is None or lanes.count == 1:
        return None
    register = lanes.type(held)
    parameters = ", ".join(f"{register} {name}" for name in _PARAMETERS.get(op, ("x",)))
    return arithmetic.function(lanes, op, parameters, register, body(lanes, register))
