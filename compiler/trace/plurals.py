"""Counts in words."""

from __future__ import annotations


def plural(count: int, noun: str, many: str = "") -> str:
    """`3 graphs`, `1 graph`, `no graphs`."""
    if count == 1:
        return f"1 {noun}"
    several = many or (noun + ("es" if noun.endswith(("s", "ch", "x")) else "s"))
    return f"no {several}" if count == 0 else f"{count:,} {several}"
