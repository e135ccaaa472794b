"""Derivatives of digamma, and Hurwitz's zeta function.

For a derivative, ATen adds up a zeta function by powers of libm, one element after the other, and
below 0 as many of them as the argument is large. With its order known, the sum is a polynomial of
reciprocals.

Sources: aten/src/ATen/native/Math.h (trigamma, zeta); DLMF 5.15.6 (reflection), 25.11.43 (tail).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import (
    Element,
    apply,
    binary,
    copysign,
    elementwise,
    eq,
    floor,
    formula_map,
    nearest,
    where,
)
from tcw.compiler.lowering.promotion import Number
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor

GREATEST_ORDER = 5
"""Up to this derivative the errors are about eager's."""
_REST_OF_PI = 1.2246467991473532e-16
"""What float64's pi lacks."""
_STEPS = {"float32": 5, "float64": 9}
"""How many terms of zeta are added before its tail."""
_TERMS = {"float32": 5, "float64": 12}
"""How many terms of the tail."""


@elementwise("polygamma", "special_polygamma")
def polygamma(n: Number, x: Element) -> Element:
    """The n-th derivative of digamma. Orders from 2 on are computed in float64."""
    if n == 0:
        return apply("digamma", x)
    if n == 1:
        return _trigamma(x)
    if n > GREATEST_ORDER:
        raise NoLowering(f"a derivative of digamma of order {n}")
    return _of_order(int(n), x.to("float64"), x.dtype).to(x.dtype)


@lowers("special_zeta")
def zeta(builder: Builder, x: Any, q: Any) -> Tensor:
    """In float64, as in ATen. On a GPU it is a call."""
    if not builder.on_cpu:
        raise NoLowering("a sum whose length depends on its argument")
    return formula_map(builder, binary("zeta"), (x, q), compute="float64")


def _trigamma(x: Element) -> Element:
    """As in ATen, whose poles below 0 are large finite numbers."""
    reflected = x < 0.5
    sine = apply("sin", x * math.pi)
    result = where(reflected, -(math.pi * math.pi / (sine * sine)), 0)
    y = where(reflected, 1 - x, x)
    for _ in range(6):
        result = result + apply("reciprocal", y * y)
        y = y + 1
    z = apply("reciprocal", y * y)
    series = 1 + 0.5 / y + z * (1 / 6 - z * (1 / 30 - z * (1 / 42)))
    result = result + series / y
    return where(reflected, -result, result)


def _of_order(n: int, x: Element, dtype: str) -> Element:
    """By zeta of x; below 0, of 1 - x, and the cotangent's derivative. `dtype`: the result's."""
    negative, sign = x < 0, 1 if n % 2 else -1
    factor = math.factorial(n)
    powers = _zeta(n + 1, where(negative, 1 - x, x), dtype)
    derivative = _derivative_of_cotangent(n, _cotangent(x))
    reflected = -factor * powers - math.pi ** (n + 1) * derivative
    value = where(negative, reflected, sign * factor * powers)
    return where((x <= 0) & eq(x, floor(x)), sign * math.inf, value)


def _zeta(s: int, x: Element, dtype: str) -> Element:
    """The sum of (x + k)^-s over k >= 0, for x > 0: some terms, and Euler and Maclaurin's tail."""
    total = apply("reciprocal", _power(x, s))
    for k in range(1, _STEPS[dtype]):
        total = total + apply("reciprocal", _power(x + k, s))
    w = x + _STEPS[dtype]
    last, inverse = apply("reciprocal", _power(w, s)), apply("reciprocal", w)
    square = inverse * inverse
    series = _polynomial(_tail(s, _TERMS[dtype]), square)
    return total + (last * w / (s - 1) + last * 0.5 + last * inverse * series)


def _tail(s: int, terms: int) -> list[float]:
    """B_2j / (2j)! times s (s + 1) ... (s + 2j - 2), for j from 1 on."""
    bernoulli = _bernoulli(2 * terms)
    return [
        float(bernoulli[2 * j] * math.prod(range(s, s + 2 * j - 1)) / math.factorial(2 * j))
        for j in range(1, terms + 1)
    ]


def _bernoulli(count: int) -> list[Fraction]:
    """The Bernoulli numbers B_0 to B_count."""
    numbers: list[Fraction] = []
    for m in range(count + 1):
        known = sum(math.comb(m + 1, k) * numbers[k] for k in range(m))
        numbers.append((Fraction(m == 0) - known) / (m + 1))
    return numbers


def _cotangent(x: Element) -> Element:
    """cot(pi x), by the distance from the nearest multiple of 1/2, which is exact."""
    signed = x - nearest(x)
    h = abs(signed)
    near = h <= 0.25
    part = where(near, h, 0.5 - h)
    angle = part * math.pi
    rest = apply("fma", part, math.pi, -angle) + part * _REST_OF_PI
    sine, cosine = apply("sin", angle), apply("cos", angle)
    value = where(near, cosine, sine) / where(near, sine, cosine)
    bent = (1 + value * value) * rest
    return copysign(value + where(near, -bent, bent), signed)


def _derivative_of_cotangent(n: int, c: Element) -> Element:
    """The n-th derivative of cot(t) at c = cot(t): each is -(1 + c^2) times the last one's by c."""
    polynomial = [0, 1]
    for _ in range(n):
        by_c = [k * a for k, a in enumerate(polynomial)][1:]
        polynomial = [-(a + b) for a, b in zip([*by_c, 0, 0], [0, 0, *by_c], strict=True)]
    odd = n % 2 == 0
    value = _polynomial(polynomial[odd::2], c * c)
    return value * c if odd else value


def _polynomial(coefficients: Sequence[Number], z: Element) -> Element:
    """By Horner's rule, from the constant one on; at least two."""
    *others, greatest = coefficients
    value = z * greatest
    for coefficient in reversed(others[1:]):
        value = (value + coefficient) * z
    return value + others[0]


def _power(x: Element, exponent: int) -> Element:
    """By squaring."""
    if exponent == 1:
        return x
    half = _power(x, exponent // 2)
    return half * half * x if exponent % 2 else half * half
