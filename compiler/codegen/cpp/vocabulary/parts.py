"""frexp on vectors: x = mantissa * 2^exponent with 1/2 <= |mantissa| < 1, from a number's bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic
from tcw.compiler.codegen.cpp.vocabulary.types import INFINITY

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def frexp(lanes: Lanes, register: str, held: str, op: str) -> str:
    """The body of `frexp_mantissa` or `frexp_exponent` of x. Zero, infinity and NaN are their own
    mantissas, with exponent 0. Denormals are scaled first."""
    single = held == "float32"
    bits = lanes.unsigned(4 if single else 8)
    absolute = arithmetic.of_floats(lanes, "abs", held).format("x")
    if single:
        tiny, scale, scaled = "0x1p-126f", "0x1p24f", "24.0f"
        exponent = f"({register})(((u >> 23) & 255u) | 0x4b000000u) - 8388734.0f"
        mantissa, zero = f"({register})((u & 0x807fffffu) | 0x3f000000u)", "0.0f"
    else:
        tiny, scale, scaled = "0x1p-1022", "0x1p54", "54.0"
        exponent = (
            f"({register})(((u >> 52) & 2047ul) | 0x4330000000000000ul) - 0x1.00000000003fep52"
        )
        mantissa = f"({register})((u & 0x800ffffffffffffful) | 0x3fe0000000000000ul)"
        zero = "0.0"
    result = f"odd ? x : {mantissa}"
    if op == "frexp_exponent":
        result = f"odd ? {register}{{}} : small ? ({exponent}) - {scaled} : ({exponent})"
    return (
        f"{register} t = {absolute}; {lanes.signed(4 if single else 8)} small = t < {tiny}, "
        f"odd = (t == {zero}) | ~(t < {register}{{}} + {INFINITY[held]});\n"
        f"  {bits} u = ({bits})(small ? x * {scale} : x);\n"
        f"  return {result};"
    )
