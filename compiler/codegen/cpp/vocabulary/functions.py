"""Elementary functions: a polynomial for float32 vectors if there is one, else SLEEF's, else
libm's.

The polynomials are within 2 ulp and match ATen's results at the edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import (
    arithmetic,
    circular,
    exponentials,
    inverse_error,
    libm,
    logarithms,
    powers,
    sleef,
    special_functions,
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
    "log": logarithms.log,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "log1p": logarithms.log1p,
}


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
    if held != "float32" or lanes.count == 1:
        return None
    register, parameters = lanes.type(held), f"{lanes.type(held)} x"
    if op == "pow":
        parameters += f", {register} y"
        body = powers.body(lanes, register)
    elif op in ("sin", "cos") and lanes.isa.fma:
        body = circular.body(lanes, register, op)
    elif op in _BODIES:
        body = _BODIES[op](lanes, register)
    else:
        return None
    return arithmetic.function(lanes, op, parameters, register, body)
