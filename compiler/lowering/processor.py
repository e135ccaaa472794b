"""This machine's processor, as far as an estimate or a choice of library depends on it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

INTEL, AMD = "GenuineIntel", "AuthenticAMD"


@cache
def vendor() -> str:
    """`GenuineIntel`, `AuthenticAMD`, …; "" if the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    rows = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in rows if key.strip() == "vendor_id"), "")
