"""Elementary functions: a polynomial for vectors if there is one, else SLEEF's, else libm's.

The polynomials are within 2 ulp and match ATen's results at the edges. Most are of float32; those
of float64 are faster than SLEEF's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import (
    arithmetic,
    circular,
    error_functions,
    exponentials,
    gamma,
    inverse_error,
    libm,
    logarithms,
    parts,
    powers,
    sleef,
    special_functions,
    wide_logarithms,
)

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


_BODIES = {
    "exp": exponentials.exp,
    "exp_nonpositive": exponentials.exp_nonpositive,
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


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if there is no such function."""
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
    elif op in ("frexp_mantissa", "frexp_exponent"):
        body = parts.frexp(lanes, register, held, op)
    elif op == "erfc" and lanes.isa.fma:
        body = error_functions.erfc(lanes, register, held)
    elif op == "erf" and held == "float64" and lanes.isa.fma:
        body = error_functions.erf(lanes, register)
    elif held == "float64":
        if op in _WIDE:
            body = _WIDE[op](lanes, register)
    elif op == "pow":
        parameters += f", {register} y"
        body = powers.body(lanes, register)
    elif op in ("sin", "cos") and lanes.isa.fma:
        body = circular.body(lanes, register, op)
    elif op in _BODIES:
        body = _BODIES[op](lanes, register)
    return body and arithmetic.function(lanes, op, parameters, register, body)
