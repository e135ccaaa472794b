"""sinh, cosh, asinh and acosh on vectors, for machines with a fused multiply-add.

Each function returns the body of the C++ function of its name, with one parameter x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import (
    arithmetic,
    exponentials,
    logarithms,
    wide_logarithms,
)
from tcw.compiler.codegen.cpp.vocabulary.polynomials import coefficients, horner
from tcw.compiler.codegen.cpp.vocabulary.types import NAN, literal

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_ODD = {
    "float32": ("0.000199535163f", "0.00833321922f", "0.166666672f"),
    "float64": coefficients("""
        1.6121284492226398e-10 2.5051918657888977e-08 2.7557319490462487e-06 0.0001984126984110069
        0.008333333333333373 0.16666666666666666"""),
}
"""(sinh(r) - r) / r^3 by r^2 for |r| <= 3/4 log(2), interpolated at Chebyshev's points."""
_EVEN = {
    "float32": ("0.00139899726f", "0.0416656397f", "0.5f"),
    "float64": coefficients("""
        1.1516130035926378e-11 2.0876587898007214e-09 2.755731953627383e-07 2.480158730129127e-05
        0.0013888888888889022 0.041666666666666664 0.5"""),
}
"""(cosh(r) - 1) / r^2 by r^2, likewise."""
_GREATEST = {"float32": "90.0f", "float64": "711.0"}
"""From there on sinh and cosh are infinite."""
_SQUARED = {"float32": "1e18f", "float64": "1e150"}
"""Magnitudes up to it have a finite square. From there on asinh and acosh are log(x) + log(2)."""


def _halves(lanes: Lanes, register: str, held: str, sign: str) -> str:
    """Lines: y = exp(t) +- exp(-t), of which 2^(n-1) is left out, for t = |x| = n log 2 + r.

    With r + a and 1 + b the odd and even parts of exp(r), and w = 4^-n (as precisely as it
    matters), it is (r + a) (1 -+ w) + (1 + b) (1 +- w). n is at least 1 from t = 3/4 log 2 on,
    where a cancellation of sinh costs no digits, and there is none where n is 0.
    """
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    one = literal(1, held)
    greatest = f"{register}{{}} + {_GREATEST[held]}"
    least = f"{register}{{}} + {literal(-60, held)}"  # an underflow would be slow
    reduced = exponentials.reduced(lanes, register, held, less=literal(0.25, held))
    other = "-" if sign == "+" else "+"
    return (
        f"{register} t = {absolute}; x = {greatest} < t ? {greatest} : t;\n"
        f"  {reduced}\n  {register} s = r * r, m = n * {literal(-2, held)};\n"
        f"  m = {least} > m ? {least} : m;\n"
        f"  {register} w = scale({register}{{}} + {one}, m);\n"
        f"  {register} o = {one} {other} w, e = {one} {sign} w;\n"
        f"  {horner('a', 's', _ODD[held], register)} a = a * s * r;\n"
        f"  {horner('b', 's', _EVEN[held], register)} b = b * s;\n"
        f"  {register} y = multiply_add(r, o, multiply_add(a, o, b * e)) + e;"
    )


def sinh(lanes: Lanes, register: str, held: str) -> str:
    signed = arithmetic.of_floats(lanes, "copysign", held)
    result = signed.format(f"scale(y, n - {literal(1, held)})", "whole")
    return f"{register} whole = x; {_halves(lanes, register, held, '-')}\n  return {result};"


def cosh(lanes: Lanes, register: str, held: str) -> str:
    return f"{_halves(lanes, register, held, '+')}\n  return scale(y, n - {literal(1, held)});"


def _define_log1p(lanes: Lanes, register: str, held: str) -> None:
    body = logarithms.log1p if held == "float32" else wide_logarithms.log1p
    arithmetic.function(lanes, "log1p", f"{register} x", register, body(lanes, register))


def asinh(lanes: Lanes, register: str, held: str) -> str:
    """log(1 + t + t^2 / (1 + sqrt(1 + t^2))) with the sign of x."""
    _define_log1p(lanes, register, held)
    one = f"{register}{{}} + {literal(1, held)}"
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    root = arithmetic.of_floats(lanes, "sqrt", held).format(f"multiply_add(t, t, {one})")
    signed = arithmetic.of_floats(lanes, "copysign", held).format("y", "x")
    return (
        f"{register} t = {absolute}; auto far = t > {_SQUARED[held]};\n"
        f"  {register} u = t * t / ({literal(1, held)} + {root});\n"
        f"  {register} y = log1p(far ? t : t + u); y = far ? y + {_log2(held)} : y;\n"
        f"  return {signed};"
    )


def acosh(lanes: Lanes, register: str, held: str) -> str:
    """log(1 + d + sqrt(2d + d^2)) with d = x - 1."""
    _define_log1p(lanes, register, held)
    root = arithmetic.of_floats(lanes, "sqrt", held).format("multiply_add(d, d, d + d)")
    return (
        f"{register} d = x - {literal(1, held)}; auto far = x > {_SQUARED[held]};\n"
        f"  {register} y = log1p(far ? x : d + {root}); y = far ? y + {_log2(held)} : y;\n"
        f"  return x < {literal(1, held)} ? {register}{{}} + {NAN[held]} : y;"
    )


def _log2(held: str) -> str:
    return literal(0.6931471805599453, held)
