"""This machine's processor, as the system reports it in /proc/cpuinfo."""

from __future__ import annotations

from functools import cache
from pathlib import Path

AMD = "AuthenticAMD"
_GUARDED = Path("/sys/devices/system/cpu/vulnerabilities/gather_data_sampling")


@cache
def reported(entry: str) -> str:
    """An entry of the first processor, such as `model name`; "" if the system has none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    rows = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in rows if key.strip() == entry), "")


def vendor() -> str:
    """`GenuineIntel`, `AuthenticAMD`, …"""
    return reported("vendor_id")


def processor_name() -> str:
    """`AMD EPYC 9B14`."""
    return reported("model name")


def feature_flags() -> frozenset[str]:
    return frozenset(reported("flags").split())


@cache
def gathers_slowly() -> bool:
    """Whether this processor's microcode guards its gather instructions, which then take several
    times as long (gather_data_sampling.rst of Linux's guide to hardware vulnerabilities)."""
    try:
        return _GUARDED.read_text(encoding="utf-8", errors="replace").startswith("Mitigation")
    except OSError:
        return False
