"""Quantities in words: bytes, durations, counts, ratios, shapes, plurals. No markup, no colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tcw.compiler.trace.byte_counts import bytes_text as bytes_text
from tcw.compiler.trace.dtypes import short_dtype
from tcw.compiler.trace.plurals import plural as plural
from tcw.compiler.trace.records import Size, TensorMeta

NOT_IN_LOG = "not in this log"
"""For facts that a torch log does not hold: there may be some."""
NOT_MEASURED = "not measured"

DEEPEST = 40
"""Maximum number of levels of indentation."""

PEAK_STEP = 256 << 10
"""Resolution of a process's peak memory in bytes: the kernel counts in such steps."""


def stepped_bytes_text(count: int, step: int) -> str:
    """`12 MB`; `under 256 KB` for what is less than one step."""
    return bytes_text(count) if count >= step else f"under {bytes_text(step)}"


def bytes_change(before: int, after: int) -> str:
    """`512 KB → 2.0 MB`; `572,400 → 572,416 B` if both would read the same."""
    one, other = bytes_text(before), bytes_text(after)
    if one == other and before != after:
        return f"{before:,} → {after:,} B"
    return f"{one} → {other}"


def seconds_text(seconds: float | None) -> str:
    """12.8 -> `12.8 s`, 0.00655 -> `6.55 ms`, 0.0000313 -> `31.3 µs`, 75 -> `1 min 15 s`."""
    if seconds is None or not math.isfinite(seconds):
        return NOT_MEASURED
    if seconds >= 59.95:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if seconds >= 0.9995:
        return f"{seconds:.1f} s"
    if seconds >= 0.0009995:
        return f"{_three_digits(seconds * 1e3)} ms"
    if seconds > 0:
        return f"{_three_digits(seconds * 1e6)} µs"
    return "0 s"


def milliseconds_text(milliseconds: float | None) -> str:
    """A measured time with three digits, for comparison: 6.55 -> `6.55 ms`, 1312 -> `1.31 s`."""
    if milliseconds is not None and 999.5 <= milliseconds < 59950:
        return f"{_three_digits(milliseconds / 1e3)} s"
    return seconds_text(None if milliseconds is None else milliseconds / 1e3)


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def number(count: int | None) -> str:
    """1634 -> `1,634`."""
    return "unknown" if count is None else f"{count:,}"


def ratio_text(ratio: float | None) -> str:
    """1.0634 -> `1.06x`."""
    if ratio is None or not math.isfinite(ratio):
        return NOT_MEASURED
    return f"{ratio:.1f}x" if ratio >= 100 else f"{ratio:.2f}x"


def percent(part: float) -> str:
    """0.24 -> `24%`, 0.012 -> `1.2%`."""
    value = part * 100
    return f"{value:.1f}%" if 0 < value < 2 and round(value, 1) != 1.0 else f"{value:.0f}%"


def error_text(value: float | None) -> str:
    """4.77e-07 -> `4.8e-07`, 0.5 -> `0.5`, 0.0 -> `0`; `not measured` for None."""
    if value is None:
        return NOT_MEASURED
    if math.isnan(value):
        return "nan"
    if not math.isfinite(value):
        return "inf"
    return "0" if value == 0 else f"{value:.2g}" if 0.001 <= value < 1000 else f"{value:.1e}"


def shape_text(shape: Sequence[Size]) -> str:
    """(4, 128, 's77') -> `4×128×s77`; () -> `scalar`."""
    return "×".join(str(size) for size in shape) if shape else "scalar"


def domain_text(sizes: Iterable[Size]) -> str:
    """(1024, 128) -> `1024 × 128`: what loops run over."""
    return " × ".join(str(size) for size in sizes)


def dtype_text(dtype: str) -> str:
    """`float32` -> `f32`, but `bool`, which is short."""
    return dtype if dtype == "bool" else short_dtype(dtype)


def tensor_text(tensor: TensorMeta) -> str:
    """`f32 4×128×256`."""
    return f"{dtype_text(tensor.dtype)} {shape_text(tensor.shape)}"


def listed(names: Sequence[str], limit: int = 3) -> str:
    """`q, k, v`; `q, k, v and 5 more`."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"


def numbers_text(numbers: Iterable[int]) -> str:
    """[2, 3, 4, 7] -> `2–4, 7`."""
    ordered = sorted(set(numbers))
    runs: list[list[int]] = []
    for value in ordered:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(_run_text(run) for run in runs)


def _run_text(run: Sequence[int]) -> str:
    if len(run) == 1:
        return str(run[0])
    return f"{run[0]}, {run[1]}" if len(run) == 2 else f"{run[0]}–{run[-1]}"


def indent(depth: int) -> str:
    """Two spaces per level, up to the deepest level that a screen shows."""
    return "  " * min(depth, DEEPEST)
