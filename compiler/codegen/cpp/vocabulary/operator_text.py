"""The text of every operator of `tcw.compiler.loops.operators`, by dtype.

Operators of C++ are written infix; all others are calls of functions, whose definitions are added
to the prelude. Sources: aten/src/ATen/native/cpu/{BinaryOps,UnaryOps,Pow}Kernel.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import (
    arithmetic,
    conversions,
    division,
    functions,
)
from tcw.compiler.codegen.cpp.vocabulary.types import CODES, SCALARS
from tcw.compiler.loops.dtypes import BYTES, FLOATS, INTEGERS, compute_dtype
from tcw.compiler.loops.operators import OPERATORS

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


@dataclass(frozen=True, slots=True)
class Syntax:
    """The syntax of an operator: `text` has a placeholder for each operand."""

    text: str
    infix: bool = False
    """Operands are adjacent to operators: all but names and calls need parentheses."""
    literals: bool = False
    """One operand may be a scalar literal."""


NAMES = frozenset(
    {
        *OPERATORS,
        *("absolute", "round_even", "square", "cube", "reciprocal_square"),
        *("erf_quick", "exp_quick", "exp_nonpositive", "exp_nonpositive_beside_one"),
        *("max_quick", "min_quick"),
        *("load", "store", "store_strided", "store_interleaved", "scatter"),
        *("inside", "to_mask", "transpose", "bf16", "half", "bf16_to_f32", "half_to_f32"),
        *("floor_divide_far", "trunc_divide_far", "remainder_far", "fmod_far"),
        *("sinh_far", "cosh_far", "asinh_far", "acosh_far", "sin_far", "cos_far", "tan_far"),
        *("f32_to_bf16", "f32_to_half", *(f"to_{code}" for code in CODES.values())),
    }
)
"""Functions that a kernel's text may call; variables of a kernel cannot have these names.

Names ending in a number (load16, floor_divide_7), and those beginning with lanes_, scan_, iota_,
argmax_ or argmin_, are not listed.
"""

DIVISIONS = frozenset({"floor_divide", "trunc_divide", "remainder", "fmod"})

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_BOOL = {
    "add": "{0} | {1}",
    "mul": "{0} & {1}",
    "maximum": "{0} | {1}",
    "minimum": "{0} & {1}",
    "fmax": "{0} | {1}",
    "fmin": "{0} & {1}",
    "ne": "{0} ^ {1}",
}
_INTEGER_IDENTITY = frozenset({"floor", "ceil", "trunc", "round"})


def form(lanes: Lanes, op: str, operand: str, dtype: str) -> Syntax:
    """The form of `op` on operands of dtype `operand`. Raises KeyError if ATen has none."""
    if op == "convert":
        return Syntax(conversions.convert(lanes, "{0}", operand, dtype), infix=True)
    if op == "rounded":
        return Syntax("{0}", infix=True)  # the argument is the conversion, which rounds
    held = compute_dtype(operand)
    if op == "where":
        return arithmetic.where(lanes, held)
    if held == "bool":
        return _of_bools(lanes, op)
    if op in _COMPARE:
        return _comparison(lanes, f"{{0}} {_COMPARE[op]} {{1}}", held, two=True)
    if op in ("isnan", "isinf", "signbit"):
        return _question(lanes, op, held)
    return _of_floats(lanes, op, held) if held in FLOATS else _of_integers(lanes, op, held)


def _comparison(lanes: Lanes, text: str, held: str, two: bool) -> Syntax:
    wrapped = conversions.to_mask(lanes, text, held)
    return Syntax(wrapped, infix=True, literals=two and _literal(held))


def _literal(held: str) -> bool:
    """Whether a scalar literal keeps a vector operand's type; it does not for short integers."""
    return BYTES[held] >= 4


def _of_bools(lanes: Lanes, op: str) -> Syntax:
    """Logical operators; lanes are 0 or -1."""
    if op in _BOOL:
        return Syntax(_BOOL[op], infix=True)
    if op in _BITS:
        return Syntax(f"{{0}} {_BITS[op]} {{1}}", infix=True)
    if op in _COMPARE:
        # false < true, although the masks are 0 and -1
        swapped = {"lt": ">", "le": ">=", "gt": "<", "ge": "<="}
        symbol = swapped.get(op, _COMPARE[op]) if lanes.count > 1 else _COMPARE[op]
        return Syntax(f"{{0}} {symbol} {{1}}", infix=True)
    if op == "bitwise_not":
        return Syntax("!{0}" if lanes.count == 1 else "~{0}", infix=True)
    if op in ("abs", "sign", "max_quick", "min_quick", "convert"):
        return Syntax({"max_quick": "{0} | {1}", "min_quick": "{0} & {1}"}.get(op, "{0}"), True)
    if op in ("isnan", "isinf", "signbit"):
        return Syntax("{0} & false" if lanes.count == 1 else "{0} & 0", infix=True)
    raise KeyError(f"{op} is not defined on bool")


def _question(lanes: Lanes, op: str, held: str) -> Syntax:
    """isnan, isinf, signbit."""
    if held in INTEGERS:
        text = "{0} < 0" if op == "signbit" and held != "uint8" else "{0} != {0}"
        return _comparison(lanes, text, held, two=False)
    if op == "isnan":
        return _comparison(lanes, "{0} != {0}", held, two=False)
    return Syntax(arithmetic.question(lanes, op, held))


def _of_floats(lanes: Lanes, op: str, held: str) -> Syntax:
    if op in _INFIX:
        return Syntax(f"{{0}} {_INFIX[op]} {{1}}", infix=True, literals=True)
    if op == "neg":
        return Syntax("-{0}", infix=True)
    if op == "reciprocal":
        one = "1.0f" if held == "float32" else "1.0"
        return Syntax(f"{one} / {{0}}", infix=True)
    if op in DIVISIONS:
        return Syntax(division.of_floats(lanes, op, held))
    if op in arithmetic.FLOAT_FUNCTIONS:
        return Syntax(arithmetic.of_floats(lanes, op, held))
    name = functions.function(lanes, op, held)
    if name is None:
        raise KeyError(f"{op} is not defined on {held}")
    return Syntax(name)


def _of_integers(lanes: Lanes, op: str, held: str) -> Syntax:
    narrow = lanes.count == 1 and BYTES[held] < 4
    cast = f"({SCALARS[held]})" if narrow else ""
    symbol = _BITS.get(op) or (_INFIX.get(op) if op != "div" else None)
    if symbol:
        text = f"{cast}({{0}} {symbol} {{1}})" if cast else f"{{0}} {symbol} {{1}}"
        return Syntax(text, infix=True, literals=_literal(held))
    if op in ("neg", "bitwise_not"):
        text = "-{0}" if op == "neg" else "~{0}"
        return Syntax(f"{cast}({text})" if cast else text, infix=True)
    if op in _INTEGER_IDENTITY:
        return Syntax("{0}", infix=True)
    if op in DIVISIONS:
        return Syntax(division.of_integers(lanes, op, held))
    return Syntax(arithmetic.of_integers(lanes, op, held))


def with_constant(
    lanes: Lanes, op: str, args: Sequence[str], operand_dtypes: Sequence[str], dtype: str
) -> str | None:
    """A simpler form of a power or an integer division with a constant second operand, or None."""
    if op not in ("pow", "floor_divide", "remainder", "trunc_divide", "fmod"):
        return None
    constant = lanes.known(args[1])
    if constant is None:
        return None
    if op == "pow":
        return arithmetic.power(lanes, args[0], constant[1], compute_dtype(dtype))
    if operand_dtypes[0] in INTEGERS and constant[1] > 0:
        return division.by_constant(lanes, op, args[0], int(constant[1]), operand_dtypes[0])
    return None
