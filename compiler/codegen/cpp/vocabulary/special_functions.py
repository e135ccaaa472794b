"""Special functions: ATen's own series, scalar C++ in `special/`, lane by lane."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import arithmetic

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes

UNARY = {
    **dict.fromkeys(("frexp_mantissa", "frexp_exponent"), "parts"),
    "erfcx": "erfcx",
    **dict.fromkeys(("erfinv", "ndtri"), "errors"),
    **dict.fromkeys(("digamma", "trigamma"), "gamma"),
    **dict.fromkeys(("i0", "i0e", "i1", "i1e"), "bessel"),
    **dict.fromkeys(("modified_bessel_k0", "modified_bessel_k1"), "bessel"),
    **dict.fromkeys(("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"), "bessel"),
    **dict.fromkeys(("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"), "waves"),
    **dict.fromkeys(("spherical_bessel_j0", "airy_ai"), "waves"),
}
"""Function -> the file that defines it."""
BINARY = {
    "gcd": "integers",
    "zeta": "gamma",
    **dict.fromkeys(("igamma", "igammac"), "incomplete_gamma"),
    **{f"chebyshev_polynomial_{kind}": "orthogonal" for kind in "tuvw"},
    **dict.fromkeys(("hermite_polynomial_h", "hermite_polynomial_he"), "orthogonal"),
    **dict.fromkeys(("laguerre_polynomial_l", "legendre_polynomial_p"), "orthogonal"),
}


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None where there is no such function."""
    file = UNARY.get(op) or BINARY.get(op)
    if file is None:
        return None
    for part in ("real", file):
        lanes.need(f"special/{part}", partial(_part, part))
    if lanes.count == 1:
        return f"special::{op}({'{0}, {1}' if op in BINARY else '{0}'})"
    register = lanes.type(held)
    parameters, operands = f"{register} x", "x[k]"
    if op in BINARY:
        parameters, operands = f"{register} a, {register} b", "a[k], b[k]"
    each = arithmetic.loop(lanes, register, f"special::{op}({operands})")
    return arithmetic.function(lanes, op, parameters, register, each, "OUTLINE")


@cache
def _part(name: str) -> str:
    path = Path(__file__).parent / "special" / f"{name}.cpp"
    return path.read_text(encoding="utf-8").rstrip()
