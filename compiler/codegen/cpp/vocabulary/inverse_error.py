"""The inverse of the error function: x times a polynomial in t = -log(1 - x^2) or in its root.

After M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011). The polynomials
interpolate erfinv(x)/x at Chebyshev's points, to 2^-26 of it in float32 and 2^-52 in float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import arithmetic, functions
from compiler.codegen.cpp.vocabulary.polynomials import horner, multiply_add
from compiler.codegen.cpp.vocabulary.types import INFINITY

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes

_HALF_ROOT_OF_PI = {
    "float32": ("0.8862269f", "3.2981443e-08f"),
    "float64": ("0.8862269254527579", "7.268936996338665e-17"),
}
"""erfinv(x)/x at 0, rounded down, and what it lacks: both positive, as the zeros' signs need."""
_F32_NEAR = (
    "-8.966148e-09f",
    "2.2501916e-07f",
    "-2.0144057e-06f",
    "4.1785484e-06f",
    "4.397651e-05f",
    "-0.00012643183f",
    "-0.00233536f",
    "0.0115492055f",
    "0.2320137f",
)
"""(erfinv(x)/x - its limit at 0) / t for t < 5."""
_F32_FAR = (
    "0.00011565694f",
    "-0.00030889275f",
    "-5.717468e-05f",
    "0.0014838023f",
    "-0.0035967159f",
    "0.0056878272f",
    "-0.0076376162f",
    "0.009445064f",
    "1.001675f",
    "2.8329768f",
)
"""erfinv(x)/x by sqrt(t) - 3 for 5 <= t < 16.7, which float32 does not exceed."""
_F64_NEAR = (
    "3.4355177590510297e-19",
    "1.786992355079309e-18",
    "-3.699583987788608e-17",
    "-1.2259784422787221e-17",
    "2.0076574003972235e-15",
    "-8.151424985583055e-15",
    "-5.638107257067493e-14",
    "6.778008531041484e-13",
    "-7.79875758900585e-13",
    "-2.915680223471305e-11",
    "1.924896478204346e-10",
    "4.2608661941521646e-10",
    "-1.1926367591185069e-08",
    "4.3232714576172115e-08",
    "3.706434114761308e-07",
    "-4.343228120094496e-06",
    "5.861990714437334e-06",
    "0.00020359528755646986",
    "-0.0017616961267059997",
    "0.00022692259238150386",
    "0.24607297026321356",
)
"""(erfinv(x)/x - its limit at 0) / t by t - 2.5 for t < 5."""
_F64_FAR = (
    "3.137107400113203e-09",
    "-3.820702696808774e-08",
    "1.3410115676767951e-07",
    "-9.92687249292486e-08",
    "-5.970314425763996e-07",
    "2.0016254953236423e-06",
    "-1.686051622760206e-06",
    "-5.94149411196029e-06",
    "2.1948630103700716e-05",
    "-2.2877276232589867e-05",
    "-4.64640267203458e-05",
    "0.00020551787027274794",
    "-0.0002831238662064749",
    "-0.00014889831039823057",
    "0.0014837372954781746",
    "-0.0035587939985274905",
    "0.00568518242002909",
    "-0.007643805570705866",
    "0.009445522011952943",
    "1.0016752766934067",
    "2.832976798728271",
)
"""erfinv(x)/x by sqrt(t) - 3 for 5 <= t < 16."""
_F64_FARTHEST = (
    "3.168635357062317e-11",
    "-2.3619551668195052e-11",
    "-3.901639741647031e-10",
    "1.4938362671113079e-09",
    "-3.553933744481174e-09",
    "7.637965232955134e-09",
    "-1.5178825591058036e-08",
    "2.9129244858381783e-08",
    "-6.759617316783465e-08",
    "2.2901355101828945e-07",
    "-9.9301753320831e-07",
    "4.526060379533575e-06",
    "-1.968177255562264e-05",
    "7.599527730765265e-05",
    "-0.00021503011969810042",
    "-0.00013871931834952628",
    "1.0103004648645426",
    "4.849906401408584",
)
"""erfinv(x)/x by sqrt(t) - 5 for 16 <= t < 36.8, which float64 does not exceed."""


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if `op` is another function."""
    if op != "erfinv":
        return None
    register = lanes.type(held)
    return arithmetic.function(lanes, op, f"{register} x", register, _body(lanes, held, register))


def _body(lanes: Lanes, held: str, register: str) -> str:
    multiply_add(lanes, register, held)
    log = functions.function(lanes, "log", held)
    assert log is not None
    single, end = held == "float32", "f" if held == "float32" else ""
    high, low = _HALF_ROOT_OF_PI[held]
    near, far = (_F32_NEAR, _F32_FAR) if single else (_F64_NEAR, _F64_FAR)
    root = arithmetic.of_floats(lanes, "sqrt", held).format("t")
    # the limit is added last and in two parts, so that its rounding and the product's are one
    lines = [
        f"{register} one = {register}{{}} + 1.0{end};",
        f"{register} t = -{log.format('(one - x) * (one + x)')}, s = {root};",
        f"{register} u = {'t' if single else 't - 2.5'}, w = s - 3.0{end};",
        horner("p", "u", near, register),
        horner("q", "w", far, register),
        f"p = multiply_add(p, t, {register}{{}} + {low});",
        f"p = multiply_add(x, {register}{{}} + {high}, x * p);",
        f"p = t < {register}{{}} + 5.0{end} ? p : x * q;",
    ]
    if single:
        lines.append(_at_one(lanes, held, "p"))
    else:
        lines.append(_farthest(lanes, register))
    return "\n  ".join(lines)


def _at_one(lanes: Lanes, held: str, otherwise: str) -> str:
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    one = "1.0f" if held == "float32" else "1.0"
    return f"return {absolute} == {one} ? x * {INFINITY[held]} : {otherwise};"


def _farthest(lanes: Lanes, register: str) -> str:
    """Lines that return p, or the result of a polynomial that one number in ten million needs."""
    beyond = arithmetic.function(
        lanes,
        "erfinv_far",
        f"{register} x, {register} s, {register} p",
        register,
        f"{register} v = s - 5.0; {horner('q', 'v', _F64_FARTHEST, register)}\n"
        f"  q = s > 4.0 ? x * q : p; {_at_one(lanes, 'float64', 'q')}",
        "OUTLINE",
    ).format("x", "s", "p")
    if lanes.count == 1:
        return f"return s > 4.0 ? {beyond} : p;"
    return f"{arithmetic.if_any(lanes, f's > {register}{{}} + 4.0', 'float64', beyond)} return p;"
