"""digamma on vectors: Cephes (psi.c), as in aten/src/ATen/native/Math.h."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, functions
from tcw.compiler.codegen.cpp.vocabulary.polynomials import horner, multiply_add
from tcw.compiler.codegen.cpp.vocabulary.types import INFINITY, NAN

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_SERIES = (
    "8.33333333333333333333E-2",
    "-2.10927960927960927961E-2",
    "7.57575757575757575758E-3",
    "-4.16666666666666666667E-3",
    "3.96825396825396825397E-3",
    "-8.33333333333333333333E-3",
    "8.33333333333333333333E-2",
)
"""log(x) - 1/(2x) - digamma(x) for x >= 10, by 1/x^2, without the constant 0."""
_TANGENT = {
    "float32": (
        "27534.316f",
        "860.4522f",
        "732.7358f",
        "161.14909f",
        "40.822414f",
        "10.335347f",
        "3.1415927f",
    ),
    "float64": (
        "25144221027.530373",
        "-6286055256.882589",
        "1276854974.054284",
        "-67525984.20477667",
        "18188373.23133606",
        "2306518.325972367",
        "680310.0345534028",
        "166559.77936966313",
        "41727.545417208115",
        "10430.301343064923",
        "2607.6002208295413",
        "651.9097519136382",
        "162.9999519903494",
        "40.80262463800933",
        "10.33542556009996",
        "3.141592653589793",
    ),
}
"""tan(pi h) / h by h^2 for h <= 1/4, interpolated at Chebyshev's points to 2^-24 and 2^-53."""
_STEPS = 5
"""Pairs of steps that bring every positive number to 10."""


def digamma(lanes: Lanes, register: str, held: str) -> str:
    """The body of digamma(x).

    Below 0, by the reflection digamma(1-x) - pi cot(pi x). The cotangent is computed from the
    distance h to the nearest multiple of 1/2, which is exact. Two steps x -> x+1 take one division.
    """
    multiply_add(lanes, register, held)
    end = "f" if held == "float32" else ""
    log = functions.function(lanes, "log", held)
    assert log is not None
    absolute = arithmetic.of_floats(lanes, "abs", held)
    nearest = arithmetic.of_floats(lanes, "round", held).format("x")
    signed = arithmetic.of_floats(lanes, "copysign", held)
    infinity = f"{register}{{}} + {INFINITY[held]}"
    zero = f"{register}{{}}"
    step = (
        f"low = v < 10.0{end}; "
        f"s = low ? s - multiply_add(v, 2.0{end}, {register}{{}} + 1.0{end})"
        f" / multiply_add(v, v, v) : s; v = low ? v + 2.0{end} : v;"
    )
    series = [f"{value}{end}" for value in _SERIES]
    return (
        f"{lanes.signed(4 if end else 8)} negative = x < 0.0{end}, low;\n"
        f"  {register} g = x - {nearest}, a = {absolute.format('g')};\n"
        f"  {register} h = a > 0.25{end} ? 0.5{end} - a : a, z = h * h;\n"
        f"  {horner('t', 'z', _TANGENT[held], register)} t = t * h;\n"
        f"  {register} c = a > 0.25{end} ? t : 1.0{end} / t;\n"
        f"  c = {signed.format('c', 'g')} * 3.14159265358979323846{end};\n"
        f"  {register} v = negative ? 1.0{end} - x : x, s = {zero};\n"
        f"  {' '.join([step] * _STEPS)}\n"
        f"  {register} i = 1.0{end} / v, w = i * i;\n"
        f"  {horner('p', 'w', series, register)}\n"
        f"  {register} y = s + {log.format('v')} - 0.5{end} * i - w * p;\n"
        f"  y = negative ? (g == 0.0{end} ? {register}{{}} + {NAN[held]} : y - c) : y;\n"
        f"  return x == 0.0{end} ? {signed.format(infinity, '-x')} : y;"
    )
