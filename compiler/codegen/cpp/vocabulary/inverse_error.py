"""The inverse of the error function: x times a polynomial in t = -log(1 - x^2) or in its root.

After M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011). The polynomials
interpolate erfinv(x)/x at Chebyshev's points, to 2^-26 of it in float32 and 2^-54 in float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, logarithms, wide_logarithms
from tcw.compiler.codegen.cpp.vocabulary.polynomials import horner, multiply_add
from tcw.compiler.codegen.cpp.vocabulary.types import INFINITY

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_HALF_ROOT_OF_PI = {
    "float32": ("0.88622665f", "2.714e-07f"),
    "float64": ("0.8862269254527568", "1.1829123945885433e-15"),
}
"""erfinv(x)/x at 0, rounded down to 21 (48) bits, so that its difference from the sum is exact, and
what it lacks. Both are positive, as the zeros' signs need."""
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
    "-2.8051196860137575e-09",
    "1.1477005834764096e-08",
    "-4.805557439087416e-09",
    "-6.303218106807019e-08",
    "1.695466865689558e-07",
    "-8.229828433536448e-08",
    "-6.44619502557642e-07",
    "2.0025193954010553e-06",
    "-1.6529681411290887e-06",
    "-5.948989470401974e-06",
    "2.1935106479767365e-05",
    "-2.287273667976468e-05",
    "-4.646065748187779e-05",
    "0.00020551654185962316",
    "-0.00028312437236790804",
    "-0.00014889809983987786",
    "0.0014837373389563102",
    "-0.0035587940159218954",
    "0.0056851824181282",
    "-0.007643805570066382",
    "0.009445522011985603",
    "1.0016752766933998",
    "2.8329767987282706",
)
"""erfinv(x)/x by sqrt(t) - 3 for 5 <= t < 16."""
_F64_FARTHEST = (
    "5.393132951557829e-12",
    "-2.034228440606832e-11",
    "1.689223905623044e-11",
    "6.927693918310245e-11",
    "-3.8473838294191684e-10",
    "1.3167036029211622e-09",
    "-3.5302653426772097e-09",
    "7.820519943168902e-09",
    "-1.521584763510124e-08",
    "2.90193195441854e-08",
    "-6.757202700562242e-08",
    "2.2905253720671616e-07",
    "-9.930256214352182e-07",
    "4.526052590411233e-06",
    "-1.968177118521679e-05",
    "7.599527808952704e-05",
    "-0.00021503011979947918",
    "-0.00013871931837983537",
    "1.0103004648645448",
    "4.849906401408584",
)
"""erfinv(x)/x by sqrt(t) - 5 for 16 <= t < 36.8, which float64 does not exceed."""
_REST = {"float32": "-1.9356445e-08f", "float64": "1.5047852583416206e-16"}
_FARTHEST_REST = "-8.25220929251163e-17"
"""The rounding errors of the far polynomials' constants."""


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if `op` is another function."""
    if op != "erfinv":
        return None
    register = lanes.type(held)
    return arithmetic.function(lanes, op, f"{register} x", register, _body(lanes, held, register))


def _body(lanes: Lanes, held: str, register: str) -> str:
    """The roundings of the logarithm, of its root and of the last sum are carried in second parts
    (`low`, `far`, `p` and `q`), and x times the whole is rounded once."""
    multiply_add(lanes, register, held)
    single, end = held == "float32", "f" if held == "float32" else ""
    log = (logarithms if single else wide_logarithms).log_in_parts(lanes, register)
    near, far = (_F32_NEAR, _F32_FAR) if single else (_F64_NEAR, _F64_FAR)
    high, rest = _HALF_ROOT_OF_PI[held]
    *slopes, middle = far
    root = arithmetic.of_floats(lanes, "sqrt", held).format("t")
    one = f"{register}{{}} + 1.0{end}"
    distance = (
        f"multiply_add(-x, x, {one})" if lanes.isa.fma else f"(1.0{end} - x) * (1.0{end} + x)"
    )
    lines = [
        f"{register} low, t = -{log.format(distance, 'low')}, s = {root}; low = -low;",
        f"{register} u = {'t' if single else 't - 2.5'}, w = s - 3.0{end};",
        horner("p", "u", near, register),
        horner("q", "w", slopes, register),
        f"{register} y = multiply_add(p, t, {register}{{}} + {high});",
        f"p = multiply_add(p, low, multiply_add(p, t, {high} - y) + {rest});",
        # the root's error is the square's divided by 2s, which is nearly linear
        f"{register} far = (multiply_add(-s, s, t) + low) * (0.1667{end} - 0.046{end} * w);",
        f"{register} z = multiply_add(q, w, {register}{{}} + {middle});",
        f"q = multiply_add(q, far, multiply_add(q, w, {middle} - z) + {_REST[held]});",
        f"auto close = t < {register}{{}} + 5.0{end}; y = close ? y : z; p = close ? p : q;",
        "p = multiply_add(x, y, x * p);",
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
    *slopes, middle = _F64_FARTHEST
    body = (
        f"{register} v = s - 5.0; {horner('q', 'v', slopes, register)}\n"
        f"  {register} z = multiply_add(q, v, {register}{{}} + {middle});\n"
        f"  low = (multiply_add(-s, s, t) + low) / (s + s);\n"
        f"  q = multiply_add(q, low, multiply_add(q, v, {middle} - z) + {_FARTHEST_REST});\n"
        f"  q = s > 4.0 ? multiply_add(x, z, x * q) : p; {_at_one(lanes, 'float64', 'q')}"
    )
    names = ("x", "t", "low", "s", "p")
    parameters = ", ".join(f"{register} {name}" for name in names)
    beyond = arithmetic.function(lanes, "erfinv_far", parameters, register, body, "OUTLINE").format(
        *names
    )
    if lanes.count == 1:
        return f"return s > 4.0 ? {beyond} : p;"
    return f"{arithmetic.if_any(lanes, f's > {register}{{}} + 4.0', 'float64', beyond)} return p;"
