"""Special functions: ATen's own series, scalar C++ in `special/`, lane by lane."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import arithmetic

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes

UNARY = {
    **dict.fromkeys(("frexp_mantissa", "frexp_exponent"), "frexp"),
    "digamma": "digamma",
}
"""Function -> the file in `special/` that defines it."""
BINARY = {"gcd": "gcd"}


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if there is no such function."""
    file = UNARY.get(op) or BINARY.get(op)
    if file is None:
        return None
    for part in ("real", file):
        lanes.need(f"special/{part}", partial(_part, part))
    if lanes.count == 1:
        return f"special::{op}({'{0}, {1}' if op in BINARY else '{0}'})"
    register = lanes.type(held)
    parameters, operands = f"{register} x", "x[k]"
    if op in BINARY:
        parameters, operands = f"{register} a, {register} b", "a[k], b[k]"
    each = arithmetic.loop(lanes, register, f"special::{op}({operands})")
    return arithmetic.function(lanes, op, parameters, register, each, "OUTLINE")


@cache
def _part(name: str) -> str:
    path = Path(__file__).parent / "special" / f"{name}.cpp"
    return path.read_text(encoding="utf-8").rstrip()
