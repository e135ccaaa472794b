"""asin, acos, atan and atan2 on vectors, for machines with a fused multiply-add.

The polynomials are interpolated at Chebyshev's points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic
from tcw.compiler.codegen.cpp.vocabulary.polynomials import coefficients, horner, multiply_add
from tcw.compiler.codegen.cpp.vocabulary.types import literal

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_SINE = {
    "float32": coefficients("""
        0.0336908475f 0.0171492379f 0.0311006624f 0.0445994027f 0.0750009418f 0.166666657f"""),
    "float64": coefficients("""
        0.028757851367421566 -0.014851887071247204 0.01740087944269402 0.005457506718640358
        0.01032281435018578 0.011479177415184906 0.013971212973552933 0.017352392720869973
        0.02237217294214989 0.030381944138531247 0.04464285714635543 0.07499999999998433
        0.16666666666666669"""),
}
"""(asin(w) - w) / w^3 by w^2 <= 1/4, to 2^-30 and 2^-58."""
_TANGENT = {
    "float32": coefficients("""
        -0.00238699722f 0.0135077713f -0.0358715393f 0.0625016913f -0.0865688026f 0.110337645f
        -0.142785683f 0.199997395f -0.333333313f"""),
    "float64": coefficients("""
        -0.009215792047089858 0.025006503566489507 -0.03806653672057366 0.04628024868570153
        -0.05240099507994713 0.05879578429582425 -0.06666435677235948 0.07692294712540285
        -0.09090908620322523 0.11111111100917376 -0.14285714285599188 0.19999999999999488
        -0.3333333333333333"""),
}
"""(atan(w) - w) / w^3 by w^2, for |w| <= 1 to 2^-26 and for |w| <= 1/2 to 2^-60."""
_PI = {
    "float32": ("3.14159274f", "-8.74227766e-8f"),
    "float64": ("3.141592653589793", "1.2246467991473532e-16"),
}
"""pi in two parts."""


def _half(lanes: Lanes, register: str, held: str) -> str:
    """Lines: t is |x|; v is t or, where t is `large` (beyond 1/2), sqrt((1-t)/2), whose arc is
    (pi/2 - asin(t)) / 2; the arc of v is v + p v."""
    multiply_add(lanes, register, held)
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    root = arithmetic.of_floats(lanes, "sqrt", held).format("z")
    half = literal(0.5, held)
    return (
        f"{register} t = {absolute}; auto large = t > {half};\n"
        f"  {register} z = large ? {half} - {half} * t : t * t, v = large ? {root} : t;\n"
        f"  {horner('p', 'z', _SINE[held], register)} p = p * z;"
    )


def asin(lanes: Lanes, register: str, held: str) -> str:
    high, low = _PI[held]
    half = literal(0.5, held)
    quarter = f"{literal(0.25, held)} * {high}"  # pi/2 in two steps: pi/4 - w is nearly exact
    signed = arithmetic.of_floats(lanes, "copysign", held).format("y", "x")
    return (
        f"{_half(lanes, register, held)}\n"
        f"  {register} w = v + v, lack = multiply_add(p, w, {register}{{}} - {half} * {low});\n"
        f"  {register} y = {quarter} + (({quarter} - w) - lack);\n"
        f"  y = large ? y : multiply_add(p, v, v);\n"
        f"  return {signed};"
    )


def acos(lanes: Lanes, register: str, held: str) -> str:
    high, low = _PI[held]
    half, zero = literal(0.5, held), f"{register}{{}}"
    signed = arithmetic.of_floats(lanes, "copysign", held).format("multiply_add(p, v, v)", "x")
    return (
        f"{_half(lanes, register, held)} p = {signed};\n"
        f"  {register} f = large ? (x < {zero} ? {zero} + {literal(1, held)} : {zero})"
        f" : {zero} + {half};\n"
        f"  return f * {high} + (f * {low} + (large ? p + p : -p));"
    )


def atan(lanes: Lanes, register: str, held: str) -> str:
    """Beyond 1, atan(1/t) is subtracted from pi/2. float64: from 1/2 to 2, atan((t-1)/(t+1)) is
    added to pi/4, which halves the polynomial's interval."""
    multiply_add(lanes, register, held)
    high, low = _PI[held]
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    signed = arithmetic.of_floats(lanes, "copysign", held).format("y", "x")
    one, half, zero = literal(1, held), literal(0.5, held), f"{register}{{}}"
    if held == "float32":
        reduced = (
            f"auto large = t > {one}; {register} w = large ? -{one} / t : t;\n"
            f"  {register} f = large ? {zero} + {half} : {zero};"
        )
    else:
        quarter = literal(0.25, held)
        reduced = (
            f"auto middle = t > {half}, large = t > {literal(2, held)};\n"
            f"  {register} d = middle ? t + {one} : {zero} + {one}, w = middle ? t - {one} : t;\n"
            f"  w = (large ? {zero} - {one} : w) / (large ? t : d);\n"
            f"  {register} f = middle ? (large ? {zero} + {half} : {zero} + {quarter}) : {zero};"
        )
    return (
        f"{register} t = {absolute};\n  {reduced}\n"
        f"  {register} z = w * w;\n"
        f"  {horner('p', 'z', _TANGENT[held], register)}\n"
        f"  {register} y = f * {high} + (w + multiply_add(p * z, w, f * {low}));\n"
        f"  return {signed};"
    )


def atan2(lanes: Lanes, register: str, held: str) -> str:
    """The body of atan2(a, b): the arc of the smaller magnitude over the larger one, added to, or
    subtracted from, f pi. float64: beyond 1/2 that of (n-d)/(n+d) and pi/4, as in `atan`.

    Where both are equal the quotient is not computed: they may be 0 or infinite.
    """
    multiply_add(lanes, register, held)
    high, low = _PI[held]
    absolute = arithmetic.of_floats(lanes, "abs", held)
    signed = arithmetic.of_floats(lanes, "copysign", held)
    one, half, zero = literal(1, held), literal(0.5, held), f"{register}{{}}"
    if held == "float32":
        reduced = (
            f"{register} w = equal ? (d > {zero} ? {zero} + {one} : {zero}) : n / d, f = {zero};"
        )
    else:
        great = literal(2.0**1000, held)  # n + d would be infinite
        reduced = (
            f"{register} k = d > {great} ? {zero} + {half} : {zero} + {one};"
            f" n = n * k; d = d * k;\n"
            f"  auto middle = (n > d * {half}) | (equal & (d > {zero}));\n"
            f"  {register} w = (middle ? n - d : n) / (middle ? n + d : d);\n"
            f"  w = equal ? {zero} : w;"
            f" {register} f = middle ? {zero} + {literal(0.25, held)} : {zero};"
        )
    return (
        f"{register} t = {absolute.format('b')}, u = {absolute.format('a')};"
        f" auto steep = u > t, equal = u == t;\n"
        f"  {register} n = steep ? t : u, d = steep ? u : t;\n"
        f"  {reduced}\n"
        f"  {register} z = w * w;\n"
        f"  {horner('p', 'z', _TANGENT[held], register)} w = multiply_add(p * z, w, w);\n"
        f"  f = steep ? {half} - f : f; w = steep ? -w : w;\n"
        f"  {register} s = {signed.format(f'{zero} + {one}', 'b')};\n"
        f"  f = s < {zero} ? {one} - f : f; w = w * s;\n"
        f"  {register} h = f * {high}, l = multiply_add(f, {zero} + {high}, -h);\n"
        f"  {register} y = h + (w + multiply_add(f, {low}, l));\n"
        f"  return {signed.format('y', 'a')};"
    )
