"""How far something is from the machine's limits: a roofline from measured ceilings.

After Williams, Waterman and Patterson, "Roofline" (2009), with a bandwidth for each working set.
"""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import Literal

from tcw.compiler.trace.records import Ceilings

Limit = Literal["bandwidth", "rate"]


def bandwidth_at(ceilings: Ceilings, size: int) -> float | None:
    """Bytes per second for a working set of this size: between two measured sizes, interpolated
    over the logarithm of the size; below the smallest or above the largest, that of the nearest
    one. None if nothing was measured."""
    points = [bandwidth for bandwidth in ceilings.bandwidth if bandwidth.bytes > 0]
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
    return points[-1].per_second


def least_seconds(
    ceilings: Ceilings, size: int | None, flops: int | None, dtype: str
) -> tuple[float, Limit] | None:
    """The least time that the ceilings allow for moving `size` bytes (read and written together)
    and computing `flops`, and the limiting ceiling.

    None if the bytes are unknown, or if there are FLOPs but no rate for their dtype.
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
