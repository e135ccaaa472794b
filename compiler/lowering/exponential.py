"""Elementary functions: roots, powers, exponentials, logarithms, trigonometric, hyperbolic and
error functions, and functions built from them.

Sources: aten/src/ATen/native/cpu/UnaryOpsKernel.cpp, PowKernel.cpp, Math.h.
"""

from __future__ import annotations

import math

from tcw.compiler.lowering.elements import (
    Element,
    Operand,
    apply,
    binary,
    elementwise,
    eq,
    erfc,
    exp,
    exp2,
    isnan,
    log,
    log1p,
    sqrt,
    together,
    unary,
    where,
)
from tcw.compiler.lowering.promotion import Number
from tcw.compiler.lowering.registry import NoLowering

LARGEST_UNROLLED_POWER = 64
"""Integer powers up to this exponent are unrolled; larger ones are left to ATen."""
NAMES = (
    *("sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)

for _name in ("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"):
    elementwise(_name)(unary(_name))
elementwise("sigmoid", "special_expit")(unary("sigmoid"))
elementwise("erf", "special_erf")(unary("erf"))
elementwise("erfc", "special_erfc")(unary("erfc"))


@elementwise("pow.Tensor_Scalar")
def power_of_element(x: Element, exponent: Operand) -> Operand:
    """Exponents with dedicated kernels in ATen are expanded."""
    if isinstance(exponent, Element):
        return power(x, exponent)
    if exponent == 0:
        return 1
    if exponent == 1:
        return x
    if not x.is_float:
        return _integer_power(x, exponent)
    known = {
        0.5: lambda: sqrt(x),
        -0.5: lambda: apply("rsqrt", x),
        -1.0: lambda: apply("reciprocal", x),
        2.0: lambda: x * x,
        3.0: lambda: x * x * x,
        4.0: lambda: (x * x) * (x * x),
        -2.0: lambda: apply("reciprocal", x * x),
    }
    return known[exponent]() if exponent in known else apply("pow", x, exponent)


def _integer_power(x: Element, exponent: Number) -> Element:
    if x.dtype == "bool" or not 0 < exponent <= LARGEST_UNROLLED_POWER:
        raise NoLowering(f"{x.dtype} to the power {exponent}")
    left, base, found = int(exponent), x, None
    while left:
        if left & 1:
            found = base if found is None else found * base
        base, left = base * base, left >> 1
    assert found is not None
    return found


@elementwise("pow.Scalar")
def power_of_number(base: Operand, exponent: Element) -> Operand:
    if not isinstance(base, Element) and base == 1:
        return 1
    if not isinstance(base, Element) and base == 2 and exponent.is_float:
        return exp2(exponent)
    return power(base, exponent)


@elementwise("pow.Tensor_Tensor", "float_power")
def power(x: Operand, exponent: Operand) -> Element:
    """Integers use squaring; a negative integer exponent rounds to zero."""
    x, exponent = together(x, exponent)
    if x.dtype == "bool":
        raise NoLowering("bool to the power of bool")
    return apply("pow", x, exponent)


@elementwise("special_logit")
def logit(x: Element, eps: float | None = None) -> Element:
    if eps is not None:
        x = where(x < eps, eps, where(x > 1 - eps, 1 - eps, x))
    return log(x / (1 - x))


@elementwise("logit_backward")
def logit_backward(grad: Element, x: Element, eps: float | None = None) -> Element:
    """0 outside [eps, 1 - eps]; without eps, NaN outside [0, 1]."""
    inner = grad / (x * (1 - x))
    if eps is not None:
        return where((x < eps) | (x > 1 - eps), 0, inner)
    return where((x < 0) | (x > 1), math.nan, inner)


@elementwise("special_xlogy")
def xlogy(x: Operand, y: Operand) -> Element:
    """x*log(y); 0 if x is 0, NaN if y is NaN."""
    x, y = together(x, y)
    return where(isnan(y), math.nan, where(eq(x, 0), 0, x * log(y)))


@elementwise("special_ndtr")
def normal_distribution(x: Element) -> Element:
    return 0.5 * erfc(x * -math.sqrt(0.5))


@elementwise("special_sinc")
def sinc(x: Element) -> Element:
    product = x * math.pi
    return where(eq(x, 0), 1, apply("sin", product) / product)


@elementwise("softplus")
def softplus(x: Element, beta: Number = 1, threshold: Number = 20) -> Element:
    scaled = x if beta == 1 else x * beta
    return where(scaled > threshold, x, log1p(exp(scaled)) / beta)


for _function in NAMES:
    elementwise(_function)(unary(_function))

elementwise("atan2")(binary("atan2"))
