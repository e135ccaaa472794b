"""What a rule of advice returns."""

from __future__ import annotations

from tcw.compiler.trace.records import Advice

Advised = str | Advice | tuple[Advice, ...]
"""A text alone is advice without code; () is none."""


def as_advice(found: Advised) -> tuple[Advice, ...]:
    """The advice found, as `Advice` items."""
    if isinstance(found, str):
        found = Advice(text=found)
    return found if isinstance(found, tuple) else (found,)
