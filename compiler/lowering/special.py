"""Special functions and orthogonal polynomials.

Sources: aten/src/ATen/native/cpu/UnaryOpsKernel.cpp, BinaryOpsKernel.cpp, Math.h.
"""

from __future__ import annotations

from compiler.lowering.builder import Builder
from compiler.lowering.elements import (
    Element,
    Operand,
    apply,
    elementwise,
    exp,
    formula_map,
    number,
    together,
    unary,
)
from compiler.lowering.registry import lowers
from compiler.lowering.tensors import Tensor

elementwise("digamma", "special_digamma", "special_psi")(unary("digamma"))
elementwise("erfinv", "special_erfinv")(unary("erfinv"))
elementwise("i0", "special_i0")(unary("i0"))
for _name in ("erfcx", "ndtri", "i0e", "i1", "i1e", "airy_ai", "spherical_bessel_j0"):
    elementwise(f"special_{_name}")(unary(_name))
for _name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
    elementwise(f"special_{_name}")(unary(_name))
for _name in ("modified_bessel_k0", "modified_bessel_k1"):
    elementwise(f"special_{_name}")(unary(_name))
    elementwise(f"special_scaled_{_name}")(unary(f"scaled_{_name}"))
elementwise("special_modified_bessel_i0")(unary("i0"))
elementwise("special_modified_bessel_i1")(unary("i1"))


@elementwise("igamma", "special_gammainc")
def lower_gamma(a: Element, x: Element) -> Element:
    return apply("igamma", a, x)


@elementwise("igammac", "special_gammaincc")
def upper_gamma(a: Element, x: Element) -> Element:
    return apply("igammac", a, x)


@elementwise("special_zeta")
def zeta(x: Operand, q: Operand) -> Element:
    x, q = together(x, q)
    return apply("zeta", x, q)


@lowers("polygamma")
def polygamma(builder: Builder, order: int, x: Tensor) -> Tensor:
    """The derivative of this order of digamma: of high orders through the zeta function."""

    def formula(element: Element) -> Element:
        if order < 2:
            return apply("trigamma" if order else "digamma", element)
        factorial = exp(apply("lgamma", number(float(order + 1), element.dtype)))
        series = apply("zeta", number(float(order + 1), element.dtype), element)
        return (factorial if order % 2 else -factorial) * series

    return formula_map(builder, formula, (x,))


def _polynomial(name: str, shifted: bool = False) -> None:
    @elementwise(f"special_{'shifted_' if shifted else ''}{name}")
    def lowering(x: Operand, degree: Operand) -> Element:
        x, degree = together(x, degree)
        return apply(name, x + x - 1 if shifted else x, degree)


for _kind in "tuvw":
    _polynomial(f"chebyshev_polynomial_{_kind}")
    _polynomial(f"chebyshev_polynomial_{_kind}", shifted=True)
for _name in ("hermite_polynomial_h", "hermite_polynomial_he"):
    _polynomial(_name)
for _name in ("laguerre_polynomial_l", "legendre_polynomial_p"):
    _polynomial(_name)
