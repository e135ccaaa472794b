"""Hits and misses of the compile caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tcw.compiler.trace.records import CacheLookup
from tcw.viewers.collected import grouped, known_sum
from tcw.viewers.recording import Recording

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
    by_cache = grouped((lookup.cache, lookup) for lookup in recording.all(CacheLookup))
    ordered = dict.fromkeys(cache for cache in (*_ORDER, *by_cache) if cache in by_cache)
    return tuple(_use(cache, by_cache[cache]) for cache in ordered)


def _use(cache: str, lookups: list[CacheLookup]) -> CacheUse:
    verdicts = [lookup.verdict for lookup in lookups]
    return CacheUse(
        cache=cache,
        hits=verdicts.count("hit"),
        misses=verdicts.count("miss"),
        bypasses=verdicts.count("bypass"),
        missed=tuple(dict.fromkeys(lookup.missed for lookup in lookups if lookup.missed)),
        saved_seconds=known_sum(lookup.saved_seconds for lookup in lookups),
    )


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
