"""How far something is from what the machine can do: its roofline, from the measured ceilings.

After Williams, Waterman and Patterson, "Roofline" (2009), with a bandwidth for each working set.
"""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import Literal

from compiler.trace.records import Ceilings

Limit = Literal["bandwidth", "rate"]


def bandwidth_at(ceilings: Ceilings, size: int) -> float | None:
    """Bytes a second of a working set of so many bytes: between two that were measured, on the
    line between them over the logarithm of the size; beyond them, that of the last one. None
    where nothing was measured, and beyond the largest of partial ceilings."""
    points = [one for one in ceilings.bandwidth if one.bytes > 0]
    if not points:
        return None
    if size <= points[0].bytes:
        return points[0].per_second
    for lower, upper in pairwise(points):
        if size <= upper.bytes:
            share = log(size / lower.bytes) / log(upper.bytes / lower.bytes)
            found = lower.per_second + share * (upper.per_second - lower.per_second)
            low, high = sorted((lower.per_second, upper.per_second))
            return min(max(found, low), high)
    return None if ceilings.partial else points[-1].per_second


def least_seconds(
    ceilings: Ceilings, size: int | None, flops: int | None, dtype: str
) -> tuple[float, Limit] | None:
    """The least time that the ceilings allow to move `size` bytes (read and written together) and
    to compute `flops`, and which ceiling it is that holds it up.

    None where the bytes are not known, or there are FLOPs and no rate of their dtype.
    """
    if size is None:
        return None
    moved = bandwidth_at(ceilings, size)
    if moved is None or moved <= 0:
        return None
    by_bytes = size / moved
    if not flops:
        return by_bytes, "bandwidth"
    rate = ceilings.rates.get(dtype)
    if not rate:
        return None
    by_flops = flops / rate
    return (by_flops, "rate") if by_flops > by_bytes else (by_bytes, "bandwidth")


def roofline_share(
    ceilings: Ceilings, size: int | None, flops: int | None, dtype: str, seconds: float
) -> float | None:
    """The least time over the time taken, from 0 to 1; None where either is not known.

    1 also where a step was faster than the ceilings, which a noisy machine and short steps allow.
    """
    least = least_seconds(ceilings, size, flops, dtype)
    if least is None or seconds <= 0:
        return None
    return min(1.0, least[0] / seconds)
