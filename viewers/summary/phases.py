"""Where the time of compiling went: phases with their own time, children taken off."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from compiler.trace.records import Phase
from viewers.recording import Recording


@dataclass(frozen=True)
class PhaseTime:
    """All phases of one name."""

    name: str
    count: int
    seconds: float
    """Their time; a phase inside one of the same name is not counted twice."""
    self_seconds: float
    """Without the phases inside them, so that these add up."""


def phase_times(recording: Recording) -> tuple[PhaseTime, ...]:
    """One entry a name, most own time first."""
    phases = {phase.id: phase for phase in recording.all(Phase)}
    inside: dict[int, float] = defaultdict(float)
    for phase in phases.values():
        if phase.parent is not None and phase.parent in phases:
            inside[phase.parent] += phase.seconds
    count: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    own: dict[str, float] = defaultdict(float)
    for phase in phases.values():
        count[phase.name] += 1
        own[phase.name] += max(0.0, phase.seconds - inside[phase.id])
        if not _has_ancestor_named(phase, phases):
            seconds[phase.name] += phase.seconds
    times = [PhaseTime(name, count[name], seconds[name], own[name]) for name in count]
    return tuple(sorted(times, key=lambda one: (-one.self_seconds, one.name)))


def _has_ancestor_named(phase: Phase, phases: dict[int, Phase]) -> bool:
    seen = {phase.id}
    parent = phase.parent
    while parent is not None and parent in phases and parent not in seen:
        if phases[parent].name == phase.name:
            return True
        seen.add(parent)
        parent = phases[parent].parent
    return False
