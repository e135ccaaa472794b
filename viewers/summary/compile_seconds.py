"""How long the user waited for each compile."""

from __future__ import annotations

from collections import defaultdict

from compiler.trace.records import FrameEnd, Phase
from viewers.recording import Recording

BACKWARD = "entire_backward_compile"
"""torch's phase of the compile of a backward; lazily, at the first backward call, outside of the
frame (`CompiledFunction.backward` in torch/_functorch/_aot_autograd/runtime_wrappers.py)."""


def compile_seconds(recording: Recording) -> dict[str, float]:
    """Compile id -> seconds of its frame and of the backward compiled for it later.

    A backward compiled inside the frame is already in the frame's seconds. Neither includes what
    tcw adds (predicting GPU code).
    """
    seconds = {end.compile_id: end.seconds for end in recording.all(FrameEnd)}
    phases = {phase.id: phase for phase in recording.all(Phase)}
    later: dict[str, float] = defaultdict(float)
    for phase in phases.values():
        outer = _outermost(phase, phases)
        if outer.name != BACKWARD:
            continue
        if phase is outer:
            later[outer.compile_id] += phase.seconds
        elif phase.name.startswith("predict ") and not _predicted(phase, phases):
            later[outer.compile_id] -= phase.seconds
    return {name: took + max(0.0, later[name]) for name, took in seconds.items()}


def _outermost(phase: Phase, phases: dict[int, Phase]) -> Phase:
    seen = {phase.id}
    while phase.parent is not None and phase.parent in phases and phase.parent not in seen:
        seen.add(phase.parent)
        phase = phases[phase.parent]
    return phase


def _predicted(phase: Phase, phases: dict[int, Phase]) -> bool:
    """Whether a phase is part of a GPU prediction."""
    seen = {phase.id}
    while phase.parent is not None and phase.parent in phases and phase.parent not in seen:
        seen.add(phase.parent)
        phase = phases[phase.parent]
        if phase.name.startswith("predict "):
            return True
    return False
