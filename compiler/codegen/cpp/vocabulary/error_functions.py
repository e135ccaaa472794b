"""erfc, and erf of float64, on vectors: N. Juffa's transformation, in parts.

With q = (a-1)/(a+2), (1+2a) exp(a^2) erfc(a) is 1 + a polynomial in q for all a >= 0 (Shepherd and
Laframboise, "Chebyshev approximation of (1+2x) exp(x^2) erfc x", 1981).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, exponentials
from tcw.compiler.codegen.cpp.vocabulary.polynomials import coefficients, horner

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_TAIL = {
    "float32": coefficients("""
        0.0019617174f -0.0022729647f -0.0064131003f 0.0014997846f 0.022537109f 0.01628211f
        -0.08565958f -0.091415636f 0.5257061f -0.643191f 0.1065933f 0.28275073f"""),
    "float64": coefficients("""
        -8.490058560622602e-07 -3.830066708105663e-06 2.1651099035228118e-05 -1.5638618667814778e-05
        -2.650019048106275e-05 1.6753791062772342e-05 9.823818835643246e-06 1.1584108023847647e-05
        4.025570927043575e-05 1.1227615202300877e-05 -9.493576701341865e-05 -0.0001988297807468248
        -0.00010202006839235813 0.00039871978419669094 0.0010199448918559088 0.0004855062357011742
        -0.0025382623134094415 -0.005498408944734282 0.0014021082947319379 0.022313454214710825
        0.01632440392448318 -0.08563469237894385 -0.09142050199900684 0.5257049355780506
        -0.643190785188889 0.10659332387975494 0.282750728467421"""),
}
"""(1+2a) exp(a^2) erfc(a) - 1 by q, interpolated at Chebyshev's points to 2^-26 and 2^-55."""
_GREATEST = {"float32": "10.06f", "float64": "27.3"}
"""From there on erfc is 0."""
_BESIDE_ONE = {"float32": "5.0f", "float64": "6.0"}
"""From there on it is negligible beside 1."""
_NEAR = coefficients("""
    5.957176147748911e-11 -1.1372848856791674e-09 1.4659775274047436e-08 -1.6350312701054695e-07
    1.6461000484121368e-06 -1.4925595266831182e-05 0.0001205533111164271 -0.000854832698083379
    0.0052239776248180145 -0.026866170645076792 0.11283791670954879 -0.3761263890318375
    0.1283791670955126""")
"""erf(x)/x - 1 by x^2 <= 1, interpolated to 2^-55."""
_FAR = coefficients("""
    0.0003737249448768534 -0.0013502170899051355 0.001033154840334667 0.001419498155018936
    0.000596629445949099 -0.008502449201124163 -0.00215464056173559 0.04263768227726755
    -0.022371158943676073 -0.2239468609651617 0.7239166828972577 -1.2234841075412894
    1.3770969228160688 -1.0928480591356025 0.427583576155807""")
"""exp(a^2) erfc(a) by (a-1)/(a+3) for 1 <= a <= 6, interpolated to 2^-58 of 1; then erf is 1."""


def erfc(lanes: Lanes, register: str, held: str) -> str:
    """The body of erfc(x); it needs the instruction of a fused multiply-add."""
    _define_tail(lanes, register, held)
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    end = "f" if held == "float32" else ""
    near = exponentials.ERF_NEAR if held == "float32" else _NEAR
    greatest, one = f"{register}{{}} + {_GREATEST[held]}", f"{register}{{}} + 1.0{end}"
    beyond = f"{register}{{}} + {_BESIDE_ONE[held]}"
    return (
        f"{register} a = {absolute}, s = x * x;\n"
        # an underflow would be slow
        f"  auto none = x > {greatest}; a = none | (x < -({beyond})) ? {beyond} : a;\n"
        f"  {horner('p', 's', near, register)}\n"
        f"  {register} y = erfc_tail(a); y = none ? {register}{{}} : y;\n"
        f"  y = x < 0 ? 2.0{end} - y : y;\n"
        f"  return a < {register}{{}} + 0.4{end} ? multiply_add(-x, p + 1.0{end}, {one}) : y;"
    )


def erf(lanes: Lanes, register: str) -> str:
    """The body of erf(x) in float64: from 1 on, 1 - exp(-a^2) times a polynomial."""
    absolute = arithmetic.of_floats(lanes, "abs", "float64").format("x")
    signed = arithmetic.of_floats(lanes, "copysign", "float64").format("1.0 - y", "whole")
    six = f"{register}{{}} + 6.0"
    lines = (
        f"{register} whole = x, a = {absolute}, s = x * x; a = {six} < a ? {six} : a; x = -a * a;",
        exponentials.reduced(lanes, register, "float64"),
        exponentials.series(register, "float64"),
        horner("c", "s", _NEAR, register),
        f"{register} v = (a - 1.0) / (a + 3.0); {horner('y', 'v', _FAR, register)}",
        "y = scale(multiply_add(multiply_add(p, r * r, r), y, y), n);",
        f"return a > 1.0 ? {signed} : multiply_add(c, whole, whole);",
    )
    return "\n  ".join(lines)


def _define_tail(lanes: Lanes, register: str, held: str) -> None:
    """Add `erfc_tail(a)` to the prelude: erfc of 0 <= a <= `_GREATEST`.

    `t` is what the square lacks.
    """
    end = "f" if held == "float32" else ""
    lines = (
        # g = exp(a^2) erfc(a), and what the quotient lacks
        f"{register} i = 1.0{end} / (a + 2.0{end}), q = (a - 1.0{end}) * i;",
        f"q = multiply_add(i, multiply_add(q, -a, multiply_add(q + 0.5{end}, -2.0{end}, a)), q);",
        horner("c", "q", _TAIL[held], register),
        f"{register} d = 1.0{end} / multiply_add(a, 2.0{end}, {register}{{}} + 1.0{end});",
        f"{register} g = multiply_add(c, d, d);",
        f"{register} low = multiply_add(g, -a, {register}{{}} + 0.5{end});",
        f"low = multiply_add(low, 2.0{end}, c - g) * d;",
        f"{register} x = -a * a, t = multiply_add(a, a, x);",
        exponentials.reduced(lanes, register, held),
        f"r = r - t; {exponentials.series(register, held)}",
        "p = multiply_add(p, r * r, r);",
        "return scale(g + multiply_add(p, g, multiply_add(p, low, low)), n);",
    )
    body = "\n  ".join(lines)
    arithmetic.function(lanes, "erfc_tail", f"{register} a", register, body)
