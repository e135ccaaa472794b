"""float32 logarithms on vectors, in the form of Cephes (logf.c).

Each function returns the body of the C++ function of its name, with one parameter x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, conversions, hardware
from tcw.compiler.codegen.cpp.vocabulary.polynomials import coefficients, horner, multiply_add
from tcw.compiler.codegen.cpp.vocabulary.types import INFINITY, NAN

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


_LOG = coefficients("""
    0.0428719781f -0.0956133977f 0.11680682f -0.12639311f 0.142683059f -0.16660817f 0.200001404f
    -0.250000566f 0.333333343f""")
"""(log(1+m) - m + m^2/2) / m^3 for 3/4 <= 1+m < 3/2, interpolated at Chebyshev's points to
2^-27."""


def _logarithm(lanes: Lanes, register: str) -> str:
    """Lines: f the exponent of x, 1+m its fraction, z = m^2, y = log(1+m) - m."""
    multiply_add(lanes, register)
    i32 = lanes.type("int32")
    parts = hardware.exponent(lanes, "float32")
    if parts:
        split = (
            f"{register} f = {parts[0]}, m = {parts[1]};\n"
            f"  f = m < 1.0f ? f + 1.0f : f; m = m - 1.0f;"
        )
    else:
        split = (
            f"{i32} small = x < 1.17549435e-38f; {register} v = small ? x * 8388608.0f : x;\n"
            f"  {i32} e = ((({i32})v >> 23) & 255) - 126 - (small & 23);\n"
            f"  {register} m = ({register})((({i32})v & 0x807fffff) | 0x3f000000);\n"
            f"  {i32} low = m < 0.75f; e += low; m = low ? m + m - 1.0f : m - 1.0f;\n"
            f"  {register} f = {conversions.cast(lanes, 'e', 'int32', 'float32')};"
        )
    return (
        f"{split}\n  {register} z = m * m;\n"
        f"  {horner('p', 'm', _LOG, register)}\n"
        f"  {register} y = p * m * z;"
    )


def edges(lanes: Lanes, register: str, held: str = "float32") -> str:
    """The statement that returns y, or the logarithm of 0, a negative number, infinity or NaN."""
    result = hardware.of_logarithm(lanes, held)
    if result is None:
        zero, infinity = f"{register}{{}}", INFINITY[held]
        edge = f"x == {zero} ? {zero} - {infinity} : {zero} + {NAN[held]}"
        result = f"x > {zero} ? (x < {infinity} ? y : x) : ({edge})"
    return f"return {result};"


def log(lanes: Lanes, register: str) -> str:
    return (
        f"{_logarithm(lanes, register)}\n"
        f"  y = multiply_add(f, -2.12194440e-4f, y); y = multiply_add(z, -0.5f, y);\n"
        f"  y = multiply_add(f, 0.693359375f, m + y);\n  {edges(lanes, register)}"
    )


def log_in_parts(lanes: Lanes, register: str) -> str:
    """The text of a call: log(x) of a positive number, and what its rounding lost in `rest`; of a
    negative one NaN."""
    body = "double y = __builtin_log(x); rest = float(y - float(y)); return float(y);"
    if lanes.count > 1:
        body = (
            f"{_logarithm(lanes, register)}\n"
            f"  y = multiply_add(f, -2.12194440e-4f, y); m = m + multiply_add(z, -0.5f, y);\n"
            f"  y = multiply_add(f, 0.693359375f, m);\n"
            f"  rest = multiply_add(f, 0.693359375f, -y) + m;\n"
            f'  return x < 0 ? {register}{{}} + __builtin_nanf("") : y;'
        )
    parameters = f"{register} x, {register}& rest"
    return arithmetic.function(lanes, "log_in_parts", parameters, register, body)


def log2(lanes: Lanes, register: str) -> str:
    return (
        f"{_logarithm(lanes, register)} y = multiply_add(z, -0.5f, y);\n"
        f"  {register} w = y * 0.44269504f; w = multiply_add(m, 0.44269504f, w);\n"
        f"  {register} s = f + m; y = s + ((w + y) + (m - (s - f)));\n  {edges(lanes, register)}"
    )


def log10(lanes: Lanes, register: str) -> str:
    """The parts of exponent and fraction are added with the rounding errors of their products and
    sum."""
    return (
        f"{_logarithm(lanes, register)} y = multiply_add(z, -0.5f, y);\n"
        f"  {register} w = (m + y) * 7.00731903251827651129e-4f;\n"
        f"  w = multiply_add(y, 4.3359375e-1f, w);"
        f" w = multiply_add(f, 2.48745663981195213739e-4f, w);\n"
        f"  {register} g = f * 3.0078125e-1f, b = m * 4.3359375e-1f, s = g + b;\n"
        f"  w = w + (multiply_add(m, 4.3359375e-1f, -b) + (b - (s - g)));"
        f" y = s + w;\n  {edges(lanes, register)}"
    )


def tiny(lanes: Lanes, register: str, held: str, bound: str) -> str:
    """Lines: `whole` is x; where its magnitude is below the bound, `tiny`, x becomes 0."""
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    return (
        f"{register} whole = x; auto tiny = {absolute} < {register}{{}} + {bound};"
        f" x = tiny ? {register}{{}} : x;"
    )


def log1p(lanes: Lanes, register: str) -> str:
    """1+x is scaled by a power of two chosen from its rounding; 1+m itself is never rounded.

    An x that is negligible beside 1 is its own result, since its cube would underflow (`softplus`
    of -30).
    """
    multiply_add(lanes, register)
    i32, infinity = lanes.type("int32"), "__builtin_inff()"
    return (
        f"{tiny(lanes, register, 'float32', '0x1p-30f')}\n"
        f"  {i32} e = (({i32})(x + 1.0f) - 0x3f400000) & 0xff800000;\n"
        f"  {register} s = ({register})(0x40800000 - e);\n"
        f"  {register} m = multiply_add(s * x, 0.25f, multiply_add(s, {register}{{}} + 0.25f,"
        f" {register}{{}} - 1.0f));\n"
        f"  {register} f = {conversions.cast(lanes, 'e >> 23', 'int32', 'float32')}, z = m * m;\n"
        f"  {horner('p', 'm', _LOG, register)}\n"
        f"  {register} y = p * m * z; y = multiply_add(f, -2.12194440e-4f, y);\n"
        f"  y = multiply_add(z, -0.5f, y); y = multiply_add(f, 0.693359375f, m + y);\n"
        f"  y = x > -1.0f ? (x < {infinity} ? y : x)"
        f' : (x == -1.0f ? {register}{{}} - {infinity} : {register}{{}} + __builtin_nanf(""));\n'
        f"  return tiny ? whole : y;"
    )
