"""exp and related functions on vectors: Cephes (expf.c, exp.c), tanh and erf after N. Juffa.

Each function returns the body of the C++ function of its name, with one parameter x. Those of
`WIDE` also exist in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, hardware
from tcw.compiler.codegen.cpp.vocabulary.polynomials import (
    WHOLE,
    coefficients,
    horner,
    multiply_add,
    nearest,
    power_of_two,
    scale,
)
from tcw.compiler.codegen.cpp.vocabulary.types import literal

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


@dataclass(frozen=True, slots=True)
class _Exponential:
    """exp in one dtype: 2^n (1 + r + r^2 p(r)) with n = nearest(x / log 2), r = x - n log 2."""

    polynomial: tuple[str, ...]
    """(exp(r) - 1 - r) / r^2 for |r| <= log(2)/2, the highest power first."""
    one_by_log2: str
    log2: tuple[str, str]
    """log 2 in two parts, of which the first has so few bits that n times it is exact, negated."""
    low: str
    """Below it, exp is 0."""
    beside_one: str
    """Below it, exp is negligible beside 1; a little further down it is denormal."""
    high: str
    """Above it, exp is infinite."""


_EXP = {
    "float32": _Exponential(
        polynomial=coefficients("""
            1.9875691500e-4f 1.3981999507e-3f 8.3334519073e-3f 4.1665795894e-2f 1.6666665459e-1f
            5.0000001201e-1f"""),
        one_by_log2="1.44269504f",
        log2=("-0.693359375f", "2.12194440e-4f"),
        low="-104.0f",
        beside_one="-87.0f",
        high="89.0f",
    ),
    # interpolated at Chebyshev's points: 2^-61 of exp
    "float64": _Exponential(
        polynomial=coefficients("""
            2.0914679376583935e-09 2.510520637395701e-08 2.7557273661348637e-07
            2.7557255425746435e-06 2.4801587325533363e-05 1.9841269874800493e-04
            1.3888888888883752e-03 8.333333333326141e-03 4.166666666666667e-02 1.666666666666667e-01
            5.0e-01"""),
        one_by_log2="1.4426950408889634",
        log2=("-6.93145751953125e-1", "-1.42860682030941723212e-6"),
        low="-746.0",
        beside_one="-708.0",
        high="710.0",
    ),
}


def _exponent(lanes: Lanes, register: str, held: str, low: str) -> str:
    """Lines: x clamped, n = nearest(x / log 2), r = x - n log 2, p the polynomial. `low` is a line
    that bounds x from below."""
    high = f"{register}{{}} + {_EXP[held].high}"
    upper = f"x = {high} < x ? {high} : x;"
    return f"{low} {upper}\n  {reduced(lanes, register, held)}\n  {series(register, held)}"


def reduced(lanes: Lanes, register: str, held: str, *, less: str = "") -> str:
    """Lines: n = nearest(x / log 2 - less), r = x - n log 2."""
    multiply_add(lanes, register, held)
    nearest(lanes, register, held)
    scale(lanes, register, held)
    n = f"{register} n = nearest(x * {_EXP[held].one_by_log2}{less and f' - {less}'});"
    return f"{n}\n  {_remainder(register, held)}"


def _remainder(register: str, held: str) -> str:
    """A line: r = x - n log 2."""
    first, second = _EXP[held].log2
    return f"{register} r = multiply_add(n, {first}, x); r = multiply_add(n, {second}, r);"


def series(register: str, held: str) -> str:
    """Lines: p = (exp(r) - 1 - r) / r^2."""
    return horner("p", "r", _EXP[held].polynomial, register)


def _none(register: str, low: str) -> str:
    """A line: where the result is 0."""
    return f"auto none = x < {register}{{}} + {low};"


def _vanishing(register: str, low: str) -> str:
    """The same, and x becomes 0 meanwhile: a result that underflows takes an Intel core some 150
    cycles, and all masked elements of a softmax would."""
    return f"{_none(register, low)} x = none ? {register}{{}} : x;"


def _exp_result(register: str, value: str) -> str:
    return f"{register} y = {value};\n  return none ? {register}{{}} : y;"


def _mantissa(held: str) -> str:
    """exp(r), between 0.7 and 1.5."""
    return f"multiply_add(p, r * r, r) + {literal(1, held)}"


def exp(lanes: Lanes, register: str, held: str = "float32") -> str:
    lines = _exponent(lanes, register, held, _vanishing(register, _EXP[held].low))
    return f"{lines}\n  {_exp_result(register, f'scale({_mantissa(held)}, n)')}"


def exp_quick(lanes: Lanes, register: str, held: str = "float32") -> str:
    """exp as a summand beside 1, where it need not vanish."""
    own = _EXP[held]
    low, high = f"{register}{{}} + {own.beside_one}", f"{register}{{}} + {own.high}"
    lines, result = _by_one_power(lanes, register, held, -1)
    clamps = f"x = {low} > x ? {low} : x; x = {high} < x ? {high} : x;"
    return f"{clamps}\n  {lines}\n  return {result};"


def exp_nonpositive(lanes: Lanes, register: str, held: str = "float32") -> str:
    """exp for x <= 0, as in x - max(x): no upper clamp."""
    lines, result = _by_one_power(lanes, register, held, 64)
    low = _vanishing(register, _EXP[held].low)
    return f"{low}\n  {lines}\n  {_exp_result(register, result)}"


def exp_nonpositive_beside_one(lanes: Lanes, register: str, held: str = "float32") -> str:
    """The same as a summand of a sum that is 1 or more, or not much less: it does not underflow.
    Below the bound it is dropped at the end, whatever one power of two has made of it."""
    lines, result = _by_one_power(lanes, register, held, 0)
    scales = hardware.scale(lanes, held) is not None
    low = (_vanishing if scales else _none)(register, _EXP[held].beside_one)
    return f"{low}\n  {lines}\n  {_exp_result(register, result)}"


def _by_one_power(lanes: Lanes, register: str, held: str, by: int) -> tuple[str, str]:
    """Lines and the result of exp, for x such that 2^(n + by) is a normal number. Two powers of two
    would take as long as the polynomial, where no instruction scales."""
    if hardware.scale(lanes, held) is not None:
        lines = f"{reduced(lanes, register, held)}\n  {series(register, held)}"
        return lines, f"scale({_mantissa(held)}, n)"
    multiply_add(lanes, register, held)
    whole = f"multiply_add(x, {_EXP[held].one_by_log2}, {register}{{}} + {WHOLE[held]})"
    lines = (
        f"{register} w = {whole};\n  {register} n = w - {WHOLE[held]};\n"
        f"  {_remainder(register, held)}\n  {series(register, held)}"
    )
    result = f"({_mantissa(held)}) * {power_of_two(lanes, register, held, 'w', by)}"
    return lines, f"{result} * {literal(2.0**-by, held)}" if by else result


def define_nonpositive(lanes: Lanes, register: str) -> None:
    """Add `exp_nonpositive(x)` to the prelude, for the body of another function."""
    body = exp_nonpositive(lanes, register)
    arithmetic.function(lanes, "exp_nonpositive", f"{register} x", register, body)


def exp2(lanes: Lanes, register: str, held: str = "float32") -> str:
    multiply_add(lanes, register, held)
    nearest(lanes, register, held)
    scale(lanes, register, held)
    least, greatest = (-151, 129) if held == "float32" else (-1076, 1025)
    low = _vanishing(register, literal(least, held))
    high = f"{register}{{}} + {literal(greatest, held)}"
    return (
        f"{low} x = {high} < x ? {high} : x;\n"
        f"  {register} n = nearest(x), r = (x - n) * {literal(0.6931471805599453, held)};\n"
        f"  {series(register, held)}\n"
        f"  {_exp_result(register, f'scale({_mantissa(held)}, n)')}"
    )


def expm1(lanes: Lanes, register: str, held: str = "float32") -> str:
    # half of 2^n, so that the greatest n does not overflow before the addition
    half, zero = ("0.5f", "0.0f") if held == "float32" else ("0.5", "0.0")
    # from there on down it is -1, without an underflow
    bound = f"{register}{{}} + {'-30.0f' if held == 'float32' else '-60.0'}"
    low = f"x = {bound} > x ? {bound} : x;"
    return (
        f"{register} whole = x;\n  {_exponent(lanes, register, held, low)}\n"
        f"  {register} t = scale({register}{{}} + {half}, n);\n"
        f"  {register} y = multiply_add(multiply_add(p, r * r, r), t, t - {half});\n"
        f"  return whole == {zero} ? whole : y + y;"
    )


def sigmoid(lanes: Lanes, register: str, held: str = "float32") -> str:
    body = exp_quick(lanes, register, held)
    arithmetic.function(lanes, "exp_quick", f"{register} x", register, body)
    one = "1.0f" if held == "float32" else "1.0"
    return f"return {one} / ({one} + exp_quick(-x));"


_TANH_NEAR = {
    "float32": coefficients("""
        -5.80102205e-3f 2.07199156e-2f -5.37628941e-2f 1.33317009e-1f -3.33332896e-1f 0.0f"""),
    # interpolated at Chebyshev's points: 2^-60 of tanh
    "float64": coefficients("""
        6.934046420988954e-06 -3.2086614037935994e-05 9.332432233847448e-05 -0.00023795201383924994
        0.0005897680994688268 -0.0014557958855734635 0.0035921242500086925 -0.008863235292803289
        0.021869488527368107 -0.05396825396808531 0.13333333333333205 -0.3333333333333333 0.0"""),
}
"""tanh(x)/x - 1 by x^2 for |x| <= 0.6."""


def tanh(lanes: Lanes, register: str, held: str = "float32") -> str:
    body = exp_nonpositive_beside_one(lanes, register, held)
    arithmetic.function(lanes, "exp_nonpositive_beside_one", f"{register} x", register, body)
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    far = arithmetic.of_floats(lanes, "copysign", held)
    one, limit = literal(1, held), literal(0.6, held)
    signed = far.format(f"{one} - (e + e) / ({one} + e)", "x")
    return (
        f"{register} t = {absolute}, s = x * x;\n"
        f"  {register} e = exp_nonpositive_beside_one(t * {literal(-2, held)});\n"
        f"  {horner('r', 's', _TANH_NEAR[held], register)}\n"
        f"  return t > {limit} ? {signed} : multiply_add(r, x, x);"
    )


WIDE: dict[str, Callable[..., str]] = {
    "exp": exp,
    "exp_quick": exp_quick,
    "exp_nonpositive": exp_nonpositive,
    "exp_nonpositive_beside_one": exp_nonpositive_beside_one,
    "exp2": exp2,
    "expm1": expm1,
    "sigmoid": sigmoid,
    "tanh": tanh,
}
"""The functions that also exist in float64."""


ERF_NEAR = coefficients("""
    -5.96761703e-4f 4.99119423e-3f -2.67681349e-2f 1.12819925e-1f -3.76125336e-1f 1.28379166e-1f""")
"""erf(x)/x - 1 by x^2 for |x| <= 0.93."""


def erf(lanes: Lanes, register: str) -> str:
    define_nonpositive(lanes, register)
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    signed = arithmetic.of_floats(lanes, "copysign", "float32").format("1.0f - tail", "x")
    four = f"{register}{{}} + 4.0f"
    return (
        f"{register} t = {absolute}, s = x * x; t = {four} < t ? {four} : t;\n"
        f"  {horner('r', 's', ERF_NEAR, register)}\n"
        f"  {register} q = multiply_add(t, -1.72853470e-5f, {register}{{}} + 3.83197126e-4f);\n"
        f"  {register} u = multiply_add(t, -3.88396438e-3f, {register}{{}} + 2.42546219e-2f);\n"
        f"  q = multiply_add(q, t * t, u); q = multiply_add(q, t, -1.06777877e-1f);\n"
        f"  q = multiply_add(q, t, -6.34846687e-1f); q = multiply_add(q, t, -1.28717512e-1f);\n"
        f"  {register} tail = exp_nonpositive(multiply_add(q, t, -t));\n"
        f"  return t > 0.927734375f ? {signed} : multiply_add(r, x, x);"
    )


def erf_quick(lanes: Lanes, register: str) -> str:
    """erf with an absolute error of at most 4e-7, for 1 + erf(x): half the instructions of `erf`.

    x P(x^2) / Q(x^2) up to 3.9, where erf is 1 - 3.5e-8. The coefficients are a minimax fit of the
    absolute error (iteratively reweighted least squares), which is 1.5e-8 before rounding.
    """
    multiply_add(lanes, register)
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    signed = arithmetic.of_floats(lanes, "copysign", "float32").format("q", "x")
    one = f"{register}{{}} + 1.0f"
    numerator = coefficients("""
        2.05038665e-6f 2.87457934e-4f 3.83689604e-3f 5.29669788e-2f 1.91941442e-1f 1.12837903f""")
    denominator = coefficients("""
        3.82307716e-5f 1.18173974e-3f 1.51092433e-2f 1.14758383e-1f 5.03435452e-1f 1.0f""")
    return (
        f"{register} t = {absolute}, s = x * x;\n"
        f"  {horner('p', 's', numerator, register)}\n"
        f"  {horner('q', 's', denominator, register)}\n"
        f"  q = t * p / q; q = (t > 3.9f) | (q > 1.0f) ? {one} : q;\n"
        f"  return {signed};"
    )
