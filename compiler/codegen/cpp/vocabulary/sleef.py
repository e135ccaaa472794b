"""Elementary functions of SLEEF, the vector library that ships inside torch's libtorch_cpu.

torch's own vectors call the same functions (aten/src/ATen/cpu/vec). A symbol's name has the
greatest error: `u10` is 1.0 ulp. Source: https://sleef.org (Shibata and Petrogalli, 2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic
from tcw.compiler.loops.dtypes import BYTES

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

LIBRARY = "torch_cpu"

_UNARY = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"), "u10"),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), "u10"),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), "u10"),
    "erf": "u10",
    "erfc": "u15",
}
_BINARY = {"pow": "u10", "atan2": "u10", "hypot": "u05"}
_GREATEST = {
    "sinh": {"float32": "88.0f", "float64": "709.0"},
    "cosh": {"float32": "88.0f", "float64": "709.0"},
    "asinh": {"float32": "1e18f", "float64": "1e153"},
    "acosh": {"float32": "1e18f", "float64": "1e153"},
}
"""Magnitudes beyond which SLEEF's result is infinite too early: libm's is taken instead."""
_WIDTHS = (256, 512)
"""Bits of the vectors that the symbols take; they choose the machine's instructions themselves."""


def names() -> Iterator[str]:
    """Every symbol that a unit may call."""
    for op, bound in (_UNARY | _BINARY).items():
        for bits in _WIDTHS:
            yield _name(op, "float32", bits // 32, bound)
            yield _name(op, "float64", bits // 64, bound)


def _name(op: str, held: str, count: int, bound: str) -> str:
    return f"Sleef_{op}{'f' if held == 'float32' else 'd'}{count}_{bound}"


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if there is no such function, or not for this many lanes."""
    op = "exp" if op.startswith("exp_nonpositive") else op
    bound = _UNARY.get(op) or _BINARY.get(op)
    bits = 8 * BYTES[held] * lanes.count
    if bound is None or not lanes.vocabulary.sleef or bits not in _WIDTHS:
        return None
    register = lanes.type(held)
    name = _name(op, held, lanes.count, bound)
    binary = op in _BINARY
    parameters = f"{register}, {register}" if binary else register
    lanes.need(
        name, lambda: f'}}\nextern "C" {register} {name}({parameters});\nnamespace {{'
    )  # a function of an unnamed namespace would be the unit's own
    lanes.vocabulary.libraries.add(LIBRARY)
    if op in _GREATEST:
        return _within(lanes, op, held, name)
    return f"{name}({'{0}, {1}' if binary else '{0}'})"


def _within(lanes: Lanes, op: str, held: str, name: str) -> str:
    register, end = lanes.type(held), "f" if held == "float32" else ""
    each = arithmetic.loop(lanes, register, f"__builtin_{op}{end}(x[k])")
    far = arithmetic.function(lanes, f"{op}_far", f"{register} x", register, each, "OUTLINE")
    greatest = f"{register}{{}} + {_GREATEST[op][held]}"
    if_far = arithmetic.if_any(
        lanes, f"(x > {greatest}) | (x < -({greatest}))", held, far.format("x")
    )
    body = f"{if_far} return {name}(x);"
    return arithmetic.function(lanes, op, f"{register} x", register, body)
