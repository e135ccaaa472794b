"""float32 sin and cos on vectors: minimax polynomials of N. Juffa on |x| <= pi/4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import arithmetic
from compiler.codegen.cpp.vocabulary.polynomials import horner, multiply_add
from compiler.codegen.cpp.vocabulary.reductions import reduce

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def body(lanes: Lanes, register: str, op: str) -> str:
    """The body of sin or cos: x minus multiples of pi/2 in three parts, up to 71476, then libm."""
    multiply_add(lanes, register)
    i32 = lanes.type("int32")
    absolute = arithmetic.of_floats(lanes, "abs", "float32").format("x")
    large = reduce(lanes, "any", f"{absolute} > 71476.0f", "bool")
    slow = arithmetic.function(
        lanes,
        f"{op}_large",
        f"{register} x",
        register,
        arithmetic.loop(lanes, register, f"__builtin_{op}f(x[k])"),
        "OUTLINE",
    ).format("x")
    sine = ("2.86567956e-6f", "-1.98559923e-4f", "8.33338592e-3f", "-1.66666672e-1f")
    cosine = ("2.44677067e-5f", "-1.38877297e-3f", "4.16666567e-2f", "-0.5f", "1.0f")
    quadrant = f"({i32})n" if op == "sin" else f"({i32})n + 1"
    return (
        f"if ({large}) return {slow};\n"
        f"  {register} n = multiply_add(x, {register}{{}} + 0.636619747f,"
        f" {register}{{}} + 12582912.0f);\n"
        f"  {i32} q = {quadrant}; n = n - 12582912.0f;\n"
        f"  {register} r = multiply_add(n, -0x1.921fb0p+00f, x);"
        f" r = multiply_add(n, -0x1.5110b4p-22f, r); r = multiply_add(n, -0x1.846988p-48f, r);\n"
        f"  {register} s = r * r;\n  {horner('a', 's', sine, register)}"
        f" a = multiply_add(a, r * s + 0.0f, r);\n"
        f"  {horner('b', 's', cosine, register)}\n"
        f"  {register} y = (q & 1) != 0 ? b : a;\n"
        f"  return ({register})(({i32})y ^ ((q & 2) << 30));"
    )
