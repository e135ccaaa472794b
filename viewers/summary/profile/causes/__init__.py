"""Why regions were lost or won: one look per cause, listed in `LOOKS`.

Looks run in order. A region that one look has explained is skipped by the later ones, so each
measured second is reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tcw.viewers.summary.profile.causes.attention import attention
from tcw.viewers.summary.profile.causes.branches import branches
from tcw.viewers.summary.profile.causes.break_costs import breaks
from tcw.viewers.summary.profile.causes.calls import copies, fallbacks, libraries
from tcw.viewers.summary.profile.causes.capture import only_captured, recomputed, removed
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.causes.generated_code import loops, spills, threads
from tcw.viewers.summary.profile.causes.host import host_bound
from tcw.viewers.summary.profile.causes.padding import padding
from tcw.viewers.summary.profile.causes.recompile_costs import recompiles
from tcw.viewers.summary.profile.causes.rest import fused, slower
from tcw.viewers.summary.profile.causes.wrong_results import wrong_results
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow, TimeDifference, standings

Look = Callable[[Index, Sequence[RegionRow]], Iterable[Cause]]

LOOKS: tuple[Look, ...] = (
    wrong_results, recompiles, attention, branches, padding, spills, fallbacks, copies, recomputed,
    threads, loops, libraries, only_captured, host_bound, slower, removed, fused, breaks,
)  # fmt: skip
"""Specific looks first. Breaks come last: what they split is also lost or won as a region."""


def causes_of(index: Index, rows: Sequence[RegionRow]) -> tuple[Cause, ...]:
    """Wrong results, then losses, largest first, then wins. Equal ones are in the
    order of the eager call.

    Nothing is reported for a region whose difference is within its noise.
    """
    found: list[Cause] = []
    left = list(rows)
    for look in LOOKS:
        causes = list(look(index, left))
        found += causes
        explained = {region for cause in causes for region in cause.regions}
        if look is not breaks:
            left = [row for row in left if row.regions[0].id not in explained]
    found = [_placed(cause, rows) for cause in found]
    row_of = {region.id: row for row in rows for region in row.regions}
    found.sort(key=lambda cause: _order(cause, row_of))
    ordered: list[tuple[tuple[bool, bool, int], Cause]] = []
    for lost in (True, False):
        part = [cause for cause in found if cause.lost is lost]
        sizes = [TimeDifference(one.seconds, one.noise) for one in part]
        places = standings(sizes)
        for cause, place in zip(part, places, strict=True):
            ordered.append(((cause.kind != "precision", not lost, place.position), cause))
    return tuple(cause for _, cause in sorted(ordered, key=lambda one: one[0]))


def _order(cause: Cause, row_of: Mapping[str, RegionRow]) -> int:
    """Its place in the eager call; what is in no region comes first."""
    return min((row_of[region].order for region in cause.regions if region in row_of), default=-1)


def _placed(cause: Cause, rows: Sequence[RegionRow]) -> Cause:
    """With the module if no line is known."""
    if cause.place is not None or not cause.regions:
        return cause
    row = next((row for row in rows if row.regions[0].id == cause.regions[0]), None)
    if row is None or not row.module:
        return cause
    return replace(cause, notes=(f"in {row.module}", *cause.notes))
