"""How long the user waited for each compile."""

from __future__ import annotations

from collections import defaultdict

from tcw.compiler.trace.records import FrameEnd, Phase
from tcw.viewers.recording import Recording
from tcw.viewers.summary.phases import outwards

BACKWARD = "entire_backward_compile"
"""torch's phase of the compile of a backward; lazily, at the first backward call, outside the
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
        around = outwards(phase, phases)
        outer = around[-1]
        if outer.name != BACKWARD:
            continue
        predictions = [one for one in around if one.name.startswith("predict ")]
        if phase is outer:
            later[outer.compile_id] += phase.seconds
        elif predictions == [phase]:  # the whole of one
            later[outer.compile_id] -= phase.seconds
    return {name: took + max(0.0, later[name]) for name, took in seconds.items()}
