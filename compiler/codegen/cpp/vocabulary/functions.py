"""Elementary functions: a polynomial for vectors if there is one, else SLEEF's, else libm's.

The polynomials are within 2 ulp and match ATen's results at the edges. They are faster than SLEEF's
functions, whose calls also keep the loop's values from staying in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import (
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
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


_BODIES = {
    "exp": exponentials.exp,
    "exp_quick": exponentials.exp_quick,
    "exp_nonpositive": exponentials.exp_nonpositive,
    "exp_nonpositive_beside_one": exponentials.exp_nonpositive_beside_one,
    "exp2": exponentials.exp2,
    "expm1": exponentials.expm1,
    "sigmoid": exponentials.sigmoid,
    "tanh": exponentials.tanh,
    "erf": exponentials.erf,
    "erf_quick": exponentials.erf_quick,
    "log": logarithms.log,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "log1p": logarithms.log1p,
}
_WIDE: dict[str, Callable[[Lanes, str], str]] = {
    **{op: partial(body, held="float64") for op, body in exponentials.WIDE.items()},
    "log": wide_logarithms.log,
    "log1p": wide_logarithms.log1p,
}
"""The bodies in float64."""
_WIDE_FUSED: dict[str, Callable[[Lanes, str], str]] = {
    "erf": error_functions.erf,
    "log2": wide_logarithms.log2,
    "log10": wide_logarithms.log10,
}
"""Functions that need the instruction of a fused multiply-add."""
_FUSED: dict[str, Callable[[Lanes, str, str], str]] = {
    "sin": lambda lanes, register, held: circular.sine(lanes, register, "sin", held),
    "cos": lambda lanes, register, held: circular.sine(lanes, register, "cos", held),
    "tan": circular.tangent,
    "asin": arcs.asin,
    "acos": arcs.acos,
    "atan": arcs.atan,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
}
"""Bodies in both floats that need it."""


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
    if lanes.count == 1:
        return None
    register, parameters = lanes.type(held), f"{lanes.type(held)} x"
    body: str | None = None
    if op == "atanh":
        body = wide_logarithms.atanh(lanes, register, held)
    elif op == "digamma":
        body = gamma.digamma(lanes, register, held)
    elif op == "zeta" and held == "float64":
        parameters = f"{register} x, {register} q"
        body = zeta.zeta(lanes, register)
    elif op in ("frexp_mantissa", "frexp_exponent"):
        body = parts.frexp(lanes, register, held, op)
    elif op == "erfc" and lanes.isa.fma:
        body = error_functions.erfc(lanes, register, held)
    elif op in _WIDE_FUSED and held == "float64" and lanes.isa.fma:
        body = _WIDE_FUSED[op](lanes, register)
    elif op in _FUSED and lanes.isa.fma:
        body = _FUSED[op](lanes, register, held)
    elif op == "atan2" and lanes.isa.fma:
        parameters = f"{register} a, {register} b"
        body = arcs.atan2(lanes, register, held)
    elif held == "float64":
        if op in _WIDE:
            body = _WIDE[op](lanes, register)
    elif op == "pow":
        parameters += f", {register} y"
        body = powers.body(lanes, register)
    elif op in _BODIES:
        body = _BODIES[op](lanes, register)
    return body and arithmetic.function(lanes, op, parameters, register, body)
