"""float32 pow on vectors: exp2(y * log2(x)) in float64, so that it is rounded once.

log2 of the fraction is the atanh series, exp2 the exp series; both are truncated below 2^-36 of
the result. The edges are those of C's pow (ISO C, annex F.10.4.4), as in ATen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, conversions
from tcw.compiler.codegen.cpp.vocabulary.polynomials import multiply_add

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_LOG = [2 / math.log(2) / power for power in range(17, 0, -2)]
"""log2(m) = s * (c0 + c1 s^2 + ...) for s = (m-1)/(m+1), |s| < 0.172; highest power first."""
_EXP = [math.log(2) ** power / math.factorial(power) for power in range(9, -1, -1)]
"""2^f for |f| <= 1/2."""


def _horner(name: str, variable: str, coefficients: list[float], register: str) -> str:
    first, *rest = coefficients
    steps = [f"{register} {name} = {register}{{}} + {first!r};"]
    steps += [f"{name} = multiply_add({name}, {variable}, {value!r});" for value in rest]
    return " ".join(steps)


def _core(lanes: Lanes) -> None:
    """Define `power(x, y)` for float64 lanes, 0 < x < infinity; results stay within float64."""
    f64, u64 = lanes.type("float64"), lanes.unsigned(8)
    multiply_add(lanes, f64, "float64")
    # an integer below 2^52 in the low bits of a float64: + 2^52 converts it, + 1.5 * 2^52 rounds
    arithmetic.function(
        lanes,
        "power",
        f"{f64} x, {f64} y",
        f64,
        f"{u64} u = ({u64})x;\n"
        f"  {f64} e = ({f64})((u >> 52) | 0x4330000000000000ul) - 0x1.00000000003ffp52;\n"
        f"  {f64} m = ({f64})((u & 0xffffffffffffful) | 0x3ff0000000000000ul);\n"
        f"  e = m > 1.4142135623730951 ? e + 1.0 : e; m = m > 1.4142135623730951 ? m * 0.5 : m;\n"
        f"  {f64} s = (m - 1.0) / (m + 1.0), z = s * s;\n"
        f"  {_horner('p', 'z', _LOG, f64)}\n"
        f"  {f64} t = y * multiply_add(p, s, e);\n"
        f"  t = {f64}{{}} - 200.0 > t ? {f64}{{}} - 200.0 : t;"
        f" t = {f64}{{}} + 200.0 < t ? {f64}{{}} + 200.0 : t;\n"
        f"  {f64} k = t + 0x1.8p52, f = t - (k - 0x1.8p52);\n"
        f"  {_horner('q', 'f', _EXP, f64)}\n"
        f"  return ({f64})(({u64})q + (({u64})k << 52));\n",
    )


def _in_float64(lanes: Lanes) -> str:
    """The text of |x|^y in float64 and back, as whole vectors or by halves."""
    if 8 * lanes.count <= lanes.isa.vector_bytes:
        _core(lanes)
        return _converted(lanes, "m", "y")
    half = lanes.vocabulary.lanes(lanes.count // 2)
    _core(half)

    def part(name: str, start: int) -> str:
        order = ", ".join(str(start + lane) for lane in range(half.count))
        return f"__builtin_shufflevector({name}, {name}, {order})"

    low, high = (_converted(half, part("m", start), part("y", start)) for start in (0, half.count))
    order = ", ".join(map(str, range(lanes.count)))
    return f"__builtin_shufflevector({low}, {high}, {order})"


def _converted(lanes: Lanes, magnitude: str, power: str) -> str:
    x, y = (conversions.cast(lanes, one, "float32", "float64") for one in (magnitude, power))
    return conversions.cast(lanes, f"power({x}, {y})", "float64", "float32")


def body(lanes: Lanes, register: str) -> str:
    """The body of pow(x, y): the magnitude, then special cases by increasing precedence."""
    infinity, nan = "__builtin_inff()", '__builtin_nanf("")'
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    trunc = arithmetic.of_floats(lanes, "trunc", "float32")
    i32, none = lanes.type("int32"), f"{register}{{}}"
    return (
        f"{register} m = {absolute}, r = {_in_float64(lanes)};\n"
        f"  {i32} whole = {trunc.format('y')} == y;\n"
        f"  {i32} odd = whole & ({trunc.format('y * 0.5f')} * 2.0f != y);\n"
        f"  r = ((m == 0.0f) | (m == {infinity})) ? "
        f"((m == 0.0f) == (y < 0.0f) ? {none} + {infinity} : {none}) : r;\n"
        f"  r = m == 1.0f ? {none} + 1.0f : r;\n"
        f"  r = (odd & (({i32})x < 0)) ? -r : r;\n"
        f"  r = ((x < 0.0f) & ~whole & (m != {infinity})) ? {none} + {nan} : r;\n"
        f"  r = ((x != x) | (y != y)) ? x + y : r;\n"
        f"  return ((x == 1.0f) | (y == 0.0f)) ? {none} + 1.0f : r;"
    )
