"""The verdict of a profile in one line: faster or slower, and the first cause with its line; and
what weakens its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcw.compiler.trace.records import CallProfile, ModeRow
from tcw.viewers.summary.place import Place
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.verdict import MACHINE_BUSY, RECOMPILED, USELESS, Tone, VerdictDetail
from tcw.viewers.words import percent, plural, ratio_text, seconds_text


@dataclass(frozen=True)
class ProfileVerdict:
    headline: str
    """`1.31x slower than eager`, `1.07x faster`, `No measurable difference in 30 rounds`,
    `Recompiled during timing`, `Speed not measured: the machine is busy`."""
    cause: str
    """The first cause in words; "" if there is none, or if it is a win that the call does not
    show."""
    place: Place | None
    """Its line."""
    detail: VerdictDetail
    """`eager 1.81 ms, compiled 2.40 ms, ±2% (30 rounds)`."""
    tone: Tone


_ALWAYS = ("precision", "recompile", "break")
"""Kinds that are in the first line, however small their share of the call."""
_LEAST = 0.01
"""Share of a call that any other cause has to reach."""


def in_noise(head: CallProfile) -> bool:
    """Whether the difference of the two sides is within the noise, a share of the longer one."""
    return abs(head.speedup - 1) <= head.noise * max(1.0, head.speedup)


def mode_in_noise(row: ModeRow) -> bool:
    """The same of a mode, whose noise is a share of the speed-up: see `Speed.in_noise`."""
    return abs(row.speedup - 1) <= row.noise * row.speedup


def _matters(head: CallProfile, cause: Cause, tone: Tone) -> bool:
    if not cause.lost and tone != "won":
        return False
    whole = max(head.eager.median, head.compiled.median)
    return cause.kind in _ALWAYS or abs(cause.seconds) >= _LEAST * whole


def verdict_of(head: CallProfile, causes: Sequence[Cause]) -> ProfileVerdict:
    eager, compiled = seconds_text(head.eager.median), seconds_text(head.compiled.median)
    noise = f"±{percent(head.noise)} ({head.rounds} rounds)"
    tone: Tone = "neutral"
    if head.compiled_again:
        headline, tone = RECOMPILED, "lost"
    elif head.contended or (in_noise(head) and head.noise >= USELESS):
        headline = MACHINE_BUSY
    elif in_noise(head):
        headline = f"No measurable difference in {head.rounds} rounds"
    elif head.speedup > 1:
        headline, tone = f"{ratio_text(head.speedup)} faster than eager", "won"
    else:
        slower = 1 / head.speedup if head.speedup > 0 else None
        headline, tone = f"{ratio_text(slower)} slower than eager", "lost"
    first = causes[0] if causes else None
    if first is not None and not _matters(head, first, tone):
        first = None
    return ProfileVerdict(
        headline=headline,
        cause=first.title if first else "",
        place=first.place if first else None,
        detail=VerdictDetail((f"eager {eager}", f"compiled {compiled}"), (noise,)),
        tone=tone,
    )


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
    if head.exceeded is not None:
        parts = f"the measured parts of a call came to {ratio_text(head.exceeded)} of it"
        return (*found, f"{parts}: whole calls were timed, and no part of them counts")
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
