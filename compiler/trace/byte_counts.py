"""Numbers of bytes in words."""

from __future__ import annotations

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def bytes_text(count: int | None) -> str:
    """524288 -> `512 KB`, 2097152 -> `2.0 MB` (units of 1024); None -> `size unknown`."""
    if count is None:
        return "size unknown"
    if abs(count) < 1024:
        return f"{count} B"
    value = float(count)
    unit = 0
    while abs(value) >= 1023.95 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    if unit == 1 and value == int(value):
        return f"{int(value)} KB"
    return f"{value:.0f} {_UNITS[unit]}" if value >= 100 else f"{value:.1f} {_UNITS[unit]}"
