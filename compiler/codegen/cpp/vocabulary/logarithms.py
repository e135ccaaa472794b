"""float32 logarithms on vectors: Cephes (logf.c).

Each function returns the body of the C++ function of its name, with one parameter x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import arithmetic, conversions
from compiler.codegen.cpp.vocabulary.polynomials import horner, multiply_add

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


_LOG = (
    "7.0376836292e-2f",
    "-1.1514610310e-1f",
    "1.1676998740e-1f",
    "-1.2420140846e-1f",
    "1.4249322787e-1f",
    "-1.6668057665e-1f",
    "2.0000714765e-1f",
    "-2.4999993993e-1f",
    "3.3333331174e-1f",
)
"""(log(1+m) - m + m^2/2) / m^3 for sqrt(1/2) <= 1+m < sqrt(2)."""


def _logarithm(lanes: Lanes, register: str) -> str:
    """Lines: f the exponent of x, 1+m its fraction, z = m^2, y = log(1+m) - m."""
    multiply_add(lanes, register)
    i32 = lanes.type("int32")
    return (
        f"{i32} small = x < 1.17549435e-38f; {register} v = small ? x * 8388608.0f : x;\n"
        f"  {i32} e = ((({i32})v >> 23) & 255) - 126 - (small & 23);\n"
        f"  {register} m = ({register})((({i32})v & 0x807fffff) | 0x3f000000);\n"
        f"  {i32} low = m < 0.707106781f; e += low; m = low ? m + m - 1.0f : m - 1.0f;\n"
        f"  {register} f = {conversions.cast(lanes, 'e', 'int32', 'float32')}, z = m * m;\n"
        f"  {horner('p', 'm', _LOG, register)}\n"
        f"  {register} y = p * m * z;"
    )


def _log_edges(register: str, result: str) -> str:
    """The result with the special cases 0, negative numbers, infinity and NaN."""
    infinity, nan = "__builtin_inff()", '__builtin_nanf("")'
    return (
        f"return x > 0.0f ? (x < {infinity} ? {result} : x)"
        f" : (x == 0.0f ? {register}{{}} - {infinity} : {register}{{}} + {nan});"
    )


def log(lanes: Lanes, register: str) -> str:
    return (
        f"{_logarithm(lanes, register)}\n"
        f"  y = multiply_add(f, -2.12194440e-4f, y); y = multiply_add(z, -0.5f, y);\n"
        f"  y = multiply_add(f, 0.693359375f, m + y);\n  {_log_edges(register, 'y')}"
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
        f"  y = ((w + y) + m) + f;\n  {_log_edges(register, 'y')}"
    )


def log10(lanes: Lanes, register: str) -> str:
    return (
        f"{_logarithm(lanes, register)} y = multiply_add(z, -0.5f, y);\n"
        f"  {register} w = (m + y) * 7.00731903251827651129e-4f;\n"
        f"  w = multiply_add(y, 4.3359375e-1f, w); w = multiply_add(m, 4.3359375e-1f, w);\n"
        f"  w = multiply_add(f, 2.48745663981195213739e-4f, w);"
        f" y = multiply_add(f, 3.0078125e-1f, w);\n  {_log_edges(register, 'y')}"
    )


def log1p(lanes: Lanes, register: str) -> str:
    """1+x is scaled by a power of two chosen from its rounding; 1+m itself is never rounded."""
    multiply_add(lanes, register)
    i32, infinity = lanes.type("int32"), "__builtin_inff()"
    return (
        f"{i32} e = (({i32})(x + 1.0f) - 0x3f3504f3) & 0xff800000;\n"
        f"  {register} s = ({register})(0x40800000 - e);\n"
        f"  {register} m = multiply_add(s * x, 0.25f, multiply_add(s, {register}{{}} + 0.25f,"
        f" {register}{{}} - 1.0f));\n"
        f"  {register} f = {conversions.cast(lanes, 'e >> 23', 'int32', 'float32')}, z = m * m;\n"
        f"  {horner('p', 'm', _LOG, register)}\n"
        f"  {register} y = p * m * z; y = multiply_add(f, -2.12194440e-4f, y);\n"
        f"  y = multiply_add(z, -0.5f, y); y = multiply_add(f, 0.693359375f, m + y);\n"
        f"  y = x > -1.0f ? (x < {infinity} ? y : x)"
        f' : (x == -1.0f ? {register}{{}} - {infinity} : {register}{{}} + __builtin_nanf(""));\n'
        f"  return x == 0.0f ? x : y;"
    )
