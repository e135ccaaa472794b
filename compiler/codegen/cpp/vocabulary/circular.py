"""sin, cos and tan on vectors, for machines with a fused multiply-add: polynomials on |x| <= pi/4.

Cody and Waite's reduction: x less the nearest multiple of pi/2, in three parts, of which the first
subtraction is exact. The polynomials of float32's sin and cos are N. Juffa's; the others are
interpolated at Chebyshev's points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic
from tcw.compiler.codegen.cpp.vocabulary.polynomials import coefficients, horner, multiply_add
from tcw.compiler.codegen.cpp.vocabulary.types import literal
from tcw.compiler.loops.dtypes import BYTES

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


@dataclass(frozen=True, slots=True)
class _Circular:
    """What one dtype needs."""

    end: str
    greatest: str
    """The magnitude beyond which libm reduces the argument."""
    whole: str
    """Adding it rounds to a whole number, which the low bits then hold."""
    two_by_pi: str
    parts: tuple[str, str, str]
    """pi/2, negated."""
    sine: tuple[str, ...]
    """(sin(r) - r) / r^3 by r^2."""
    cosine: tuple[str, ...]
    """(cos(r) - 1) / r^2 by r^2."""
    tangent: tuple[str, ...]
    """(tan(r) - r) / r^3 by r^2."""


_OF = {
    "float32": _Circular(
        end="f",
        greatest="71476.0f",
        whole="12582912.0f",
        two_by_pi="0.636619747f",
        parts=("-0x1.921fb0p+00f", "-0x1.5110b4p-22f", "-0x1.846988p-48f"),
        sine=("2.86567956e-6f", "-1.98559923e-4f", "8.33338592e-3f", "-1.66666672e-1f"),
        cosine=("2.44677067e-5f", "-1.38877297e-3f", "4.16666567e-2f", "-0.5f"),
        tangent=coefficients("""
            0.00384397223f 0.00118391856f 0.00996302534f 0.0216208771f 0.0539944954f 0.133332312f
            0.333333343f"""),
    ),
    "float64": _Circular(
        end="",
        greatest="1e9",
        whole="0x1.8p52",
        two_by_pi="0.6366197723675814",
        parts=("-0x1.921fb54442d18p+0", "-0x1.1a62633145c07p-54", "0x1.f1976b7ed8fbcp-110"),
        sine=coefficients("""
            1.591810123027412e-10 -2.5051131455427946e-08 2.755731610068303e-06
            -0.0001984126983675497 0.008333333333330946 -0.16666666666666666"""),
        cosine=coefficients("""
            -1.1382614868556325e-11 2.0876146024689747e-09 -2.7557317270560326e-07
            2.4801587298763433e-05 -0.0013888888888887395 0.041666666666666664 -0.5"""),
        tangent=coefficients("""
            8.487285594671859e-06 -1.8331699057125857e-05 3.65464597605376e-05
            -1.1046558640843714e-05 5.561124389347579e-05 8.99738173317227e-05
            0.00024123023201540384 0.0005895746779049437 0.001455902893419782 0.0035921209631917536
            0.0088632360047476 0.021869488517019683 0.05396825396865669 0.13333333333333
            0.3333333333333333"""),
    ),
}


def _quadrant(lanes: Lanes, register: str, op: str, held: str) -> str:
    """Lines: beyond the greatest magnitude libm; q has the quadrant in its low bits, n is it as a
    float, and r is x less the first part of n times pi/2."""
    multiply_add(lanes, register, held)
    own = _OF[held]
    bits = lanes.unsigned(BYTES[held])
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    each = arithmetic.loop(lanes, register, f"__builtin_{op}{own.end}(x[k])")
    far = arithmetic.function(lanes, f"{op}_far", f"{register} x", register, each, "OUTLINE")
    within = ((absolute, "!>", f"({register}{{}} + {own.greatest})"),)
    large = arithmetic.unless_all(lanes, within, held, far.format("x"))
    return (
        f"{large}\n"
        f"  {register} n = multiply_add(x, {own.two_by_pi}, {register}{{}} + {own.whole});\n"
        f"  {bits} q = ({bits})n; n = n - {own.whole};\n"
        f"  {register} r = multiply_add(n, {own.parts[0]}, x);"
    )


def sine(lanes: Lanes, register: str, op: str, held: str) -> str:
    """The body of sin or cos."""
    own, bits = _OF[held], lanes.unsigned(BYTES[held])
    _, second, third = own.parts
    quadrant = "q" if op == "sin" else "(q + 1)"
    one, zero = literal(1, held), literal(0, held)
    return (
        f"{_quadrant(lanes, register, op, held)}\n"
        f"  r = multiply_add(n, {second}, r); r = multiply_add(n, {third}, r);\n"
        f"  {register} s = r * r;\n  {horner('a', 's', own.sine, register)}"
        f" a = multiply_add(a, r * s + {zero}, r);\n"
        f"  {horner('b', 's', (*own.cosine, one), register)}\n"
        f"  {register} y = ({quadrant} & 1) != 0 ? b : a;\n"
        f"  return ({register})(({bits})y ^ (({quadrant} & 2) << {8 * BYTES[held] - 2}));"
    )


def tangent(lanes: Lanes, register: str, held: str) -> str:
    """The body of tan: of the reduced argument, or -1 over it.

    `l` is what the reduction's rounding lost, added as l (1 + t^2); `low` with it what t lacks.
    Beside a multiple of pi/2, `r` is so small that `l` is a hundredth of it, until both are added.
    """
    own = _OF[held]
    _, second, third = own.parts
    one, zero = f"{register}{{}} + {literal(1, held)}", literal(0, held)
    return (
        f"{_quadrant(lanes, register, 'tan', held)}\n"
        f"  {register} p = n * {own.parts[1]}, f = r, g = p; r = f + p;\n"
        f"  {register} h = r - f, l = (f - (r - h)) + (g - h);\n"
        f"  l = l + multiply_add(n, {second}, -p); l = multiply_add(n, {third}, l);\n"
        f"  h = r; r = r + l; l = l - (r - h);\n"
        f"  {register} s = r * r;\n  {horner('c', 's', own.tangent, register)} c = c * s;\n"
        f"  {register} t = multiply_add(c, r, r), low = multiply_add(c, r, r - t);\n"
        f"  low = multiply_add(l, multiply_add(t, t, {one}), low);\n"
        f"  {register} y = -{literal(1, held)} / t;\n"
        f"  {register} e = multiply_add(y, low, multiply_add(y, t, {one}));\n"
        f"  y = (q & 1) != 0 ? multiply_add(y, e, y) : t + low;\n"
        f"  return x == {zero} ? x : y;"
    )
