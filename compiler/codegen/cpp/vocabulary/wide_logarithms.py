"""float64 logarithms on vectors, after FreeBSD's e_log.c (Sun Microsystems); atanh in both floats.

Each function returns the body of the C++ function of its name, with one parameter x. Without an
instruction for it, all find the exponent in a number's bits, not by conversions of 64-bit integers,
which AVX2 lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, hardware, logarithms
from tcw.compiler.codegen.cpp.vocabulary.polynomials import coefficients, horner, multiply_add
from tcw.compiler.codegen.cpp.vocabulary.types import INFINITY, NAN

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_LOG = coefficients("""
    0.13604517062720323 0.13210295347053236 0.15388837982487366 0.18181738372176318
    0.22222223038856737 0.285714285673329 0.4000000000000781 0.6666666666666666""")
"""(log((1+s)/(1-s)) - 2s) / s^3 by s^2, for 1+s over 1-s from 3/4 to 3/2, interpolated at
Chebyshev's points to 2^-60."""
_LOG2 = ("6.93147180369123816490e-01", "1.90821492927058770002e-10")
"""log 2 in two parts, of which the first has so few bits that e times it is exact."""
_Parts = tuple[str, str]
_TO_FIELD = "0x0008000000000000ul"
"""The bits of 1 less those of 3/4: added to a number's bits, they make its exponent that of the
power of two that is at most 4/3 of it."""
_LEAST = "0x3fe8000000000000ul"


def _series(lanes: Lanes, register: str) -> str:
    """Lines: the logarithm of 1+m is m - h + w (p z + h)."""
    multiply_add(lanes, register, "float64")
    return (
        f"{register} h = m * m * 0.5, w = m / (m + 2.0), z = w * w;\n"
        f"  {horner('p', 'z', _LOG, register)}"
    )


def _fraction(lanes: Lanes, register: str) -> str:
    """Lines: y the logarithm of 2^e (1+m), m what it has beside e times log 2 (its first part)."""
    high, low = _LOG2
    return (
        f"{_series(lanes, register)}\n"
        f"  {register} y = multiply_add(w, multiply_add(p, z, h), e * {low});\n"
        f"  m = m - (h - y); y = multiply_add(e, {high}, m);"
    )


def _split(lanes: Lanes, register: str) -> str:
    """Lines: x is 2^e (1+m), for a positive x."""
    parts = hardware.exponent(lanes, "float64")
    if parts:
        return (
            f"{register} e = {parts[0]}, m = {parts[1]};\n  e = m < 1.0 ? e + 1.0 : e; m = m - 1.0;"
        )
    u64, mask = lanes.unsigned(8), lanes.signed(8)
    return (
        f"{mask} small = x < 0x1p-1022; {register} v = small ? x * 0x1p54 : x;\n"
        f"  {u64} k = ({u64})v + {_TO_FIELD};\n"
        f"  {register} e = ({register})((k >> 52) | 0x4330000000000000ul) - 0x1.00000000003ffp52;\n"
        f"  e = small ? e - 54.0 : e;\n"
        f"  {register} m = ({register})((k & 0xffffffffffffful) + {_LEAST}) - 1.0;"
    )


def _logarithm(lanes: Lanes, register: str) -> str:
    """Lines: y the logarithm of a positive x, e and m as of `_fraction`."""
    return f"{_split(lanes, register)}\n  {_fraction(lanes, register)}"


def log(lanes: Lanes, register: str) -> str:
    return f"{_logarithm(lanes, register)}\n  {logarithms.edges(lanes, register, 'float64')}"


def _to_base(lanes: Lanes, register: str, one: _Parts, two: _Parts) -> str:
    """The body of log2 or log10: `one` is 1 / log(base), `two` is log(2) / log(base), both in two
    parts. The logarithm of 1+m is f + g, y times the base's is i + j."""
    edges = logarithms.edges(lanes, register, "float64")
    return (
        f"{_split(lanes, register)}\n  {_series(lanes, register)}\n"
        f"  {register} f = m - h, g = multiply_add(w, multiply_add(p, z, h), (m - f) - h);\n"
        f"  {register} i = f * {one[0]}, j = multiply_add(f, {one[0]}, -i);\n"
        f"  j = multiply_add(f, {one[1]}, multiply_add(g, {one[0]}, j));\n"
        f"  {register} d = e * {two[0]}, y = d + i;\n"
        f"  j = multiply_add(e, {two[1]}, j + ((d - y) + i)); y = y + j;\n  {edges}"
    )


def log2(lanes: Lanes, register: str) -> str:
    one = ("1.4426950408889634", "2.0355273740931033e-17")
    return _to_base(lanes, register, one, ("1.0", "0.0"))


def log10(lanes: Lanes, register: str) -> str:
    one = ("0.4342944819032518", "1.098319650216765e-17")
    return _to_base(
        lanes, register, one, ("3.01029995663611771306e-01", "3.69423907715893078616e-13")
    )


def log_in_parts(lanes: Lanes, register: str) -> str:
    """The text of a call: log(x) of a positive number, and what its rounding lost in `rest` (0 in a
    scalar); of a negative one NaN."""
    body = "rest = 0.0; return __builtin_log(x);"
    if lanes.count > 1:
        body = (
            f"{_logarithm(lanes, register)}\n  rest = multiply_add(e, {_LOG2[0]}, -y) + m;\n"
            f"  return x < 0 ? {register}{{}} + {NAN['float64']} : y;"
        )
    parameters = f"{register} x, {register}& rest"
    return arithmetic.function(lanes, "log_in_parts", parameters, register, body)


def log1p(lanes: Lanes, register: str) -> str:
    """As `logarithms.log1p`."""
    u64, infinity, nan = lanes.unsigned(8), INFINITY["float64"], NAN["float64"]
    return (
        f"{logarithms.tiny(lanes, register, 'float64', '0x1p-54')}\n"
        f"  {u64} k = ({u64})(x + 1.0) + {_TO_FIELD}; k = k >> 52;\n"
        f"  {register} e = ({register})(k | 0x4330000000000000ul) - 0x1.00000000003ffp52;\n"
        f"  {register} s = ({register})(0x8000000000000000ul - (k << 52));\n"
        f"  {register} m = multiply_add(s * x, 0.25, multiply_add(s, {register}{{}} + 0.25,"
        f" {register}{{}} - 1.0));\n"
        f"  {_fraction(lanes, register)}\n"
        f"  y = x > -1.0 ? (x < {infinity} ? y : x)"
        f" : (x == -1.0 ? {register}{{}} - {infinity} : {register}{{}} + {nan});\n"
        f"  return tiny ? whole : y;"
    )


_ATANH = {
    "float32": ("0.10815883f", "0.10986231f", "0.14289331f", "0.19999963f", "0.33333334f"),
    "float64": coefficients("""
        0.0693074350017873 0.04869059122402853 0.05920622488630218 0.06664452295776094
        0.07692386427550188 0.0909090739381252 0.1111111113206256 0.14285714285583206
        0.20000000000000318 0.3333333333333333"""),
}
"""(atanh(w) - w) / w^3 by w^2 <= 0.0798, interpolated at Chebyshev's points to 2^-59 (2^-30)."""


def atanh(lanes: Lanes, register: str, held: str) -> str:
    """With s a power of two near (1-t)/(1+t), t the magnitude: -log(s)/2 + atanh(w), where
    w = (s(1+t) - (1-t)) / (s(1+t) + (1-t)). Below 0.22, s is 1 and w is t."""
    multiply_add(lanes, register, held)
    single = held == "float32"
    size, mantissa, bias = (4, 23, 127) if single else (8, 52, 1023)
    end, unsigned = ("f", "u") if single else ("", "ul")
    bits = lanes.unsigned(size)
    # log2 is nearly linear in a number's bits; by the quarter, s is 1 until the result is 0.23
    near = f"({bits})u - ({bits})d + {hex(1 << (mantissa - 2))}{unsigned}"
    shift = f"({bias}{unsigned} - k) << {mantissa}"
    if single:
        whole, low = f"({register})(k | 0x4b000000u) - 8388608.0f", "-1.06097220e-4f"
        high = "0.3466796875f"
    else:
        whole, low = f"({register})(k | 0x4330000000000000ul) - 0x1p52", "9.54107464635293889e-11"
        high = "3.46573590184561908e-01"
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    signed = arithmetic.of_floats(lanes, "copysign", held).format("y", "x")
    one = f"{register}{{}} + 1.0{end}"
    return (
        f"{register} t = {absolute}, u = 1.0{end} + t, d = 1.0{end} - t;\n"
        f"  {bits} k = ({near}) >> {mantissa};\n"
        f"  {register} e = {whole}, s = ({register})({shift});\n"
        f"  {register} n = multiply_add(s, t - (u - 1.0{end}), multiply_add(s, u, -d));\n"
        f"  n = n - ((1.0{end} - d) - t);\n"
        f"  {register} w = n / multiply_add(s, u, d); w = s == 1.0{end} ? t : w;\n"
        f"  {register} z = w * w;\n"
        f"  {horner('p', 'z', _ATANH[held], register)}\n"
        f"  {register} y = multiply_add(p * z, w, e * {low}); y = multiply_add(e, {high}, w + y);\n"
        f"  y = t < {one} ? y : (t == {one} ? {register}{{}} + {INFINITY[held]}"
        f" : {register}{{}} + {NAN[held]});\n"
        f"  return {signed};"
    )
