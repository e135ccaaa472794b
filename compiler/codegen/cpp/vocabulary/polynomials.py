"""Building blocks of polynomials on vectors.

In a clamp, the constant comes first in the comparison: lo > x ? lo : x propagates NaN and is one
instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, conversions, hardware
from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def coefficients(numbers: str) -> tuple[str, ...]:
    """The coefficients of a polynomial as C++ literals, the highest power first."""
    return tuple(numbers.split())


def multiply_add(lanes: Lanes, register: str, held: str = "float32") -> None:
    """Define `multiply_add(a, b, c)`: it rounds once if there is an instruction, else twice."""
    body, scalar = "return a * b + c;", SCALARS[held]
    if lanes.isa.fma:
        body = f"return {arithmetic.of_floats(lanes, 'fma', held).format('a', 'b', 'c')};"
    two = f"{register} a, {register} b"
    arithmetic.function(lanes, "multiply_add", f"{two}, {register} c", register, body)
    arithmetic.function(
        lanes,
        "multiply_add",
        f"{two}, {scalar} c",
        register,
        f"return multiply_add(a, b, {register}{{}} + c);",
    )
    arithmetic.function(
        lanes,
        "multiply_add",
        f"{register} a, {scalar} b, {register} c",
        register,
        f"return multiply_add(a, {register}{{}} + b, c);",
    )


def horner(name: str, variable: str, coefficients: Sequence[str], register: str) -> str:
    """Lines that evaluate a polynomial, coefficients from the highest power down."""
    high, second, *rest = coefficients
    lines = [
        f"{register} {name} = multiply_add({variable}, {high}, {register}{{}} + {second});",
        *(f"{name} = multiply_add({name}, {variable}, {value});" for value in rest),
    ]
    return " ".join(lines)


WHOLE = {"float32": "12582912.0f", "float64": "0x1.8p52"}
"""1.5 * 2^23 and 1.5 * 2^52: adding it rounds to a whole number, which the low bits then hold."""


def nearest(lanes: Lanes, register: str, held: str) -> None:
    """Define `nearest(x)`: the nearest whole number for |x| < 2^22 (2^51)."""
    builtin, whole = hardware.rounding(lanes, held, "round"), WHOLE[held]
    body = f"return {builtin};" if builtin else f"return (x + {whole}) - {whole};"
    arithmetic.function(lanes, "nearest", f"{register} x", register, body)


def power_of_two(lanes: Lanes, register: str, held: str, whole: str, by: int) -> str:
    """2^(n + by), a normal number, where `whole` is n + `WHOLE`: its low bits become the exponent.
    Multiplied by a NaN it is a NaN, whatever n was."""
    bits, bias, of_mantissa = (
        (lanes.type("int32"), 127, 23) if held == "float32" else (lanes.unsigned(8), 1023, 52)
    )
    exponent = f"({bias + by}{'' if held == 'float32' else 'UL'} << {of_mantissa})"
    return f"({register})((({bits}){whole} << {of_mantissa}) + {exponent})"


def scale(lanes: Lanes, register: str, held: str) -> None:
    """Define `scale(x, n)`: x * 2^n for whole n, rounded once."""
    builtin = hardware.scale(lanes, held)
    if builtin is not None:
        body = f"return {builtin};"
    elif held == "float32":
        i32 = lanes.type("int32")
        body = (
            f"{i32} k = {conversions.cast(lanes, 'n', 'float32', 'int32')}, h = k >> 1, g = k - h; "
            f"return x * ({register})((h + 127) << 23) * ({register})((g + 127) << 23);"
        )
    else:
        u64, whole = lanes.unsigned(8), WHOLE[held]
        body = (
            f"{register} h = (n * 0.5 + {whole}) - {whole}, g = n - h; "
            f"return x * ({register})(({u64})(h + ({whole} + 1023.0)) << 52)"
            f" * ({register})(({u64})(g + ({whole} + 1023.0)) << 52);"
        )
    arithmetic.function(lanes, "scale", f"{register} x, {register} n", register, body)
