"""Hits and misses of the compile caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compiler.trace.records import CacheLookup
from viewers.recording import Recording

_ORDER = (
    "aot autograd",
    "fx graph",
    "autotuning",
    "kernel build",
    "triton",
    "triton configurations",
)
"""In the order in which a compile queries them; any other comes last."""

Served = Literal["", "some", "all"]


@dataclass(frozen=True)
class CacheUse:
    """One cache."""

    cache: str
    hits: int
    misses: int
    bypasses: int
    missed: tuple[str, ...]
    """Distinct reasons of misses and bypasses, in order of occurrence."""
    saved_seconds: float | None


def cache_uses(recording: Recording) -> tuple[CacheUse, ...]:
    """One entry per cache, in the order in which a compile queries them."""
    by_cache: dict[str, list[CacheLookup]] = {name: [] for name in _ORDER}
    for lookup in recording.all(CacheLookup):
        by_cache.setdefault(lookup.cache, []).append(lookup)
    uses = []
    for cache, lookups in by_cache.items():
        if not lookups:
            continue
        saved = [one.saved_seconds for one in lookups if one.saved_seconds is not None]
        uses.append(
            CacheUse(
                cache=cache,
                hits=sum(one.verdict == "hit" for one in lookups),
                misses=sum(one.verdict == "miss" for one in lookups),
                bypasses=sum(one.verdict == "bypass" for one in lookups),
                missed=tuple(dict.fromkeys(one.missed for one in lookups if one.missed)),
                saved_seconds=sum(saved) if saved else None,
            )
        )
    return tuple(uses)


def served_from_caches(recording: Recording) -> Served:
    """How many of the compiled graphs came from a cache, with no code generated."""
    verdicts = {
        lookup.verdict
        for lookup in recording.all(CacheLookup)
        if lookup.cache in ("aot autograd", "fx graph")
    }
    if "hit" not in verdicts:
        return ""
    return "all" if verdicts == {"hit"} else "some"
