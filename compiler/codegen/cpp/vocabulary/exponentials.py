"""float32 exp and related functions on vectors: Cephes (expf.c), tanh and erf after N. Juffa.

Each function returns the body of the C++ function of its name, with one parameter x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import arithmetic
from compiler.codegen.cpp.vocabulary.polynomials import horner, multiply_add, nearest, scale

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


_EXP = (
    "1.9875691500e-4f",
    "1.3981999507e-3f",
    "8.3334519073e-3f",
    "4.1665795894e-2f",
    "1.6666665459e-1f",
    "5.0000001201e-1f",
)
"""(exp(r) - 1 - r) / r^2 for |r| <= log(2)/2."""


def _exponent(lanes: Lanes, register: str, low: str, high: str | None) -> str:
    """Lines: x clamped, n = nearest(x / log 2), r = x - n log 2, p the polynomial."""
    multiply_add(lanes, register)
    nearest(lanes, register)
    scale(lanes, register)
    upper = f" x = {register}{{}} + {high} < x ? {register}{{}} + {high} : x;" if high else ""
    return (
        f"x = {register}{{}} + {low} > x ? {register}{{}} + {low} : x;{upper}\n"
        f"  {register} n = nearest(x * 1.44269504f);\n"
        f"  {register} r = multiply_add(n, -0.693359375f, x);"
        f" r = multiply_add(n, 2.12194440e-4f, r);\n"
        f"  {horner('p', 'r', _EXP, register)}"
    )


_EXP_RESULT = "return scale(multiply_add(p, r * r, r) + 1.0f, n);"


def exp(lanes: Lanes, register: str) -> str:
    return f"{_exponent(lanes, register, '-104.0f', '89.0f')}\n  {_EXP_RESULT}"


def exp_nonpositive(lanes: Lanes, register: str) -> str:
    """exp for x <= 0, as in x - max(x): no upper clamp."""
    return f"{_exponent(lanes, register, '-104.0f', None)}\n  {_EXP_RESULT}"


def define_nonpositive(lanes: Lanes, register: str) -> None:
    """Add `exp_nonpositive(x)` to the prelude, for the body of another function."""
    body = exp_nonpositive(lanes, register)
    arithmetic.function(lanes, "exp_nonpositive", f"{register} x", register, body)


def exp2(lanes: Lanes, register: str) -> str:
    multiply_add(lanes, register)
    nearest(lanes, register)
    scale(lanes, register)
    low, high = f"{register}{{}} - 151.0f", f"{register}{{}} + 129.0f"
    return (
        f"x = {low} > x ? {low} : x; x = {high} < x ? {high} : x;\n"
        f"  {register} n = nearest(x), r = (x - n) * 0.693147181f;\n"
        f"  {horner('p', 'r', _EXP, register)}\n  {_EXP_RESULT}"
    )


def expm1(lanes: Lanes, register: str) -> str:
    # half of 2^n, so that n = 128 does not overflow before the addition
    return (
        f"{register} whole = x;\n  {_exponent(lanes, register, '-104.0f', '89.0f')}\n"
        f"  {register} t = scale({register}{{}} + 0.5f, n);\n"
        f"  {register} y = multiply_add(multiply_add(p, r * r, r), t, t - 0.5f);\n"
        f"  return whole == 0.0f ? whole : y + y;"
    )


def sigmoid(lanes: Lanes, register: str) -> str:
    arithmetic.function(lanes, "exp", f"{register} x", register, exp(lanes, register))
    return "return 1.0f / (1.0f + exp(-x));"


def tanh(lanes: Lanes, register: str) -> str:
    define_nonpositive(lanes, register)
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    far = arithmetic.of_floats(lanes, "copysign", "float32")
    signed = far.format("1.0f - (e + e) / (1.0f + e)", "x")
    near = ("1.57394409e-2f", "-5.23025580e-2f", "1.33152470e-1f", "-3.33327681e-1f", "0.0f")
    return (
        f"{register} t = {absolute}, s = x * x, e = exp_nonpositive(t * -2.0f);\n"
        f"  {horner('r', 's', near, register)}\n"
        f"  return t > 0.6f ? {signed} : multiply_add(r, x, x);"
    )


def erf(lanes: Lanes, register: str) -> str:
    define_nonpositive(lanes, register)
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    signed = arithmetic.of_floats(lanes, "copysign", "float32").format("1.0f - tail", "x")
    four = f"{register}{{}} + 4.0f"
    near = (
        "-5.96761703e-4f",
        "4.99119423e-3f",
        "-2.67681349e-2f",
        "1.12819925e-1f",
        "-3.76125336e-1f",
        "1.28379166e-1f",
    )
    return (
        f"{register} t = {absolute}, s = x * x; t = {four} < t ? {four} : t;\n"
        f"  {horner('r', 's', near, register)}\n"
        f"  {register} q = multiply_add(t, -1.72853470e-5f, {register}{{}} + 3.83197126e-4f);\n"
        f"  {register} u = multiply_add(t, -3.88396438e-3f, {register}{{}} + 2.42546219e-2f);\n"
        f"  q = multiply_add(q, t * t, u); q = multiply_add(q, t, -1.06777877e-1f);\n"
        f"  q = multiply_add(q, t, -6.34846687e-1f); q = multiply_add(q, t, -1.28717512e-1f);\n"
        f"  {register} tail = exp_nonpositive(multiply_add(q, t, -t));\n"
        f"  return t > 0.927734375f ? {signed} : multiply_add(r, x, x);"
    )
