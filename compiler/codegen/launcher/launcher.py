"""The texts of the launcher, which is compiled once, and of what every unit shares with it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PARTS = ("interface.cpp", "addresses.cpp", "pool.cpp", "calls.cpp")


@cache
def launcher_text() -> str:
    """The launcher's translation unit: it includes nothing and links nothing of torch."""
    return "\n".join(_part(name) for name in PARTS)


@cache
def interface_text() -> str:
    """What a unit with segments starts with."""
    return _part("interface.cpp")


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
