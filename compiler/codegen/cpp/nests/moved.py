"""Copies of 16-bit floats move bits: nothing is widened to float32 and rounded again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.codegen.cpp.vocabulary.types import halfword
from compiler.loops.dtypes import REDUCED
from compiler.loops.expressions import Const, Expression, Local, Read, ReadIndexed
from compiler.loops.nest import Let, Nest, Statement, Write

BITS = "int16"


def as_bits(nest: Nest, dtypes: Mapping[str, str]) -> tuple[Nest, Mapping[str, str]]:
    """A nest that only copies 16-bit floats, and the dtypes of its buffers: as integers of 16 bits.

    Any other nest as it is.
    """
    if not all(_copies(statement) for statement in nest.statements):
        return nest, dtypes
    statements = [replace(s, dtype=BITS, expression=_bits(s.expression)) for s in nest.statements]
    made = replace(nest, statements=tuple(statements))
    moved = {
        p.buffer
        for s in statements
        for p in (s, s.expression)
        if isinstance(p, (Write, Read, ReadIndexed))
    }
    return made, {**dtypes, **dict.fromkeys(moved, BITS)}


def _copies(statement: Statement) -> bool:
    """Whether a statement moves elements, or a number, as they are. Indices are of other dtypes."""
    if not (
        isinstance(statement, Let) or (isinstance(statement, Write) and statement.mode == "set")
    ):
        return False
    value = statement.expression
    if not isinstance(value, (Const, Read, ReadIndexed, Local)) or value.dtype != statement.dtype:
        return False
    number = _number(value)
    held = number is None or halfword(number, value.dtype) is not None
    return value.dtype in REDUCED and held


def _number(value: Expression) -> float | None:
    """The number that is written, everywhere or beyond the border."""
    if isinstance(value, Const):
        return value.number
    return value.otherwise if isinstance(value, ReadIndexed) else None


def _bits(value: Expression) -> Expression:
    number = _number(value)
    bits = None if number is None else halfword(number, value.dtype)
    if isinstance(value, Const):
        assert bits is not None
        return Const(bits, BITS)
    if isinstance(value, ReadIndexed):
        return replace(value, dtype=BITS, otherwise=bits)
    assert isinstance(value, (Read, Local))
    return replace(value, dtype=BITS)
