"""Inductor's sizes, as stored in records."""

from __future__ import annotations

from typing import Any

from compiler.trace.records import Size


def expression_size(value: Any) -> Size:
    """A sympy size as a number, or as text if it is symbolic."""
    if isinstance(value, int):
        return value
    if getattr(value, "is_Integer", False):
        return int(value)
    return str(value)
