"""The rules that keep two groups apart, with stable names and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RULES = {
    "empty": "a domain without elements is not fused",
    "domain": "one loop nest runs over one flat domain, and row scalars over its rows",
    "digits": "all accesses must be sums of stride times axis over common digits",
    "reduction": "one nest has one kind of row",
    "access": "a value that stays in registers is read where it is made",
    "recomputed": "a value must not be recomputed for each row",
    "rider": "only a plain column sum or full sum rides along in a loop over other rows",
    "finish": "a riding reduction is finished only after the whole nest",
    "strided rows": "rows whose digits are not the innermost must be wide and fit in the cache",
    "tiles": "accesses that one loop transposes are contiguous along two axes at most",
    "gather": "a value read through an index must be in memory",
    "scan": "a scan shares a loop whose rows it runs along",
    "barrier": "memory that a store or a call writes is read in an earlier or a later loop",
    "scatter": "stores that may hit an element twice run in order",
    "cycle": "something between the two depends on one, and the other depends on it",
    "working set": "the accumulators of a loop must fit in a cache near the core",
    "pointers": "a loop uses a limited number of arrays at once",
    "too little": "the bytes that the two share do not justify a common loop",
    "veto": "an override keeps them apart",
}
"""Name -> general description."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why two groups are not fused."""

    rule: str
    reason: str
    legal: bool = False
    """Fusing would be correct but does not pay off; an override may force it."""
    numbers: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The quantities compared, in addition to those known for every pair."""
    between: tuple[str, ...] = ()
    """The nodes that stand between the two, if that is why."""
