"""The text of the launcher, which is compiled once, and of the interface shared with units."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PARTS = ("interface.cpp", "addresses.cpp", "pool.cpp", "calls.cpp")


@cache
def launcher_text() -> str:
    """The launcher's translation unit, which includes and links nothing of torch."""
    return "\n".join(_part(name) for name in PARTS)


@cache
def interface_text() -> str:
    """The beginning of each unit with segments."""
    return _part("interface.cpp")


@cache
def device_text() -> str:
    """What follows it in a unit whose kernels run on a GPU."""
    return _part("device.cpp")


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
