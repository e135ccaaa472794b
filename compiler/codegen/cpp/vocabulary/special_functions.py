"""Special functions: ATen's own series, scalar C++ in `special/`, lane by lane."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

UNARY = {**dict.fromkeys(("frexp_mantissa", "frexp_exponent"), "frexp"), "digamma": "digamma"}
"""Function -> the file in `special/` that defines it."""
BINARY = ("zeta",)
"""Functions of two numbers, each with a file of its name."""


def function(lanes: Lanes, op: str, held: str) -> str | None:
    """The text of a call; None if there is no such function."""
    if op in BINARY:
        return _each(lanes, op, op, held, ("a", "b"), op)
    file = UNARY.get(op)
    return None if file is None else _each(lanes, op, file, held, ("x",), op)


def gcd(lanes: Lanes, held: str, name: str) -> str:
    """The text of a call; `name` is the function's version for vectors."""
    return _each(lanes, "gcd", "gcd", held, ("a", "b"), name)


def of_lane(lanes: Lanes, op: str, operands: tuple[str, ...], file: str = "") -> str:
    """The text of a call for lane k of vectors."""
    for part in ("real", file or op):
        lanes.need(f"special/{part}", partial(_part, part))
    return f"special::{op}({', '.join(f'{operand}[k]' for operand in operands)})"


def _each(lanes: Lanes, op: str, file: str, held: str, operands: tuple[str, ...], name: str) -> str:
    lane = of_lane(lanes, op, operands, file)
    if lanes.count == 1:
        return f"special::{op}({', '.join(f'{{{place}}}' for place in range(len(operands)))})"
    register = lanes.type(held)
    each = arithmetic.loop(lanes, register, lane)
    parameters = ", ".join(f"{register} {operand}" for operand in operands)
    return arithmetic.function(lanes, name, parameters, register, each, "OUTLINE")


@cache
def _part(name: str) -> str:
    path = Path(__file__).parent / "special" / f"{name}.cpp"
    return path.read_text(encoding="utf-8").rstrip()
