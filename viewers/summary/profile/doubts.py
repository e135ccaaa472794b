"""What weakens the figures of a profile: shown before them in every view."""

from __future__ import annotations

from tcw.viewers.summary.profile.index import Index
from tcw.viewers.words import plural

_ONE_SIDED = "a region without a counterpart counts as neither lost nor won"

_BUSY = "other programs use the processors: whole calls were timed, and no part of them"


def doubts(index: Index) -> tuple[str, ...]:
    """One sentence each, the worst first; may contain an error's text: show it as data."""
    head, found = index.head, []
    if head.compiled_again:
        graphs = plural(head.compiled_again, "graph")
        found.append(f"{graphs} compiled during timing: the times mean nothing")
    if head.contended:
        return (*found, _BUSY)
    if head.unmeasured:
        found.append(f"not measured: {head.unmeasured}")
    if not index.eager_is_known:
        found.append("the eager operations were not measured: no region counts as lost or won")
    if not index.compiled_is_known:
        found.append(_compiled(index))
    if index.unplaced:
        settings = index.recording.settings
        cached = ": profile without --cached" if settings and settings.cached else ""
        steps = plural(index.unplaced, "compiled step")
        verb = "computes" if index.unplaced == 1 else "compute"
        found.append(f"what {steps} {verb} is not recorded: {_ONE_SIDED}{cached}")
    return tuple(found)


def _compiled(index: Index) -> str:
    if not index.some_steps_are_known:
        return "the steps of the compiled graphs were not measured: no region counts as lost or won"
    return f"the steps of some compiled graphs were not measured: {_ONE_SIDED}"
