"""Where compile time went: phases with their own time, which excludes their children.

torch builds kernels on separate threads while the compile waits or continues. Their time is kept
apart, so that the own times of all phases add up to the duration of the compile.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from tcw.compiler.trace.records import FrameEnd, Phase
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording

STAGES = {
    "dynamo": "capture",
    "entire_frame_compile": "capture",
    "bytecode_tracing": "capture",
    "build_guards": "capture",
    "backend_compile": "autograd",
    "entire_backward_compile": "autograd",
    "create_aot_dispatcher_function": "autograd",
    "_recursive_pre_grad_passes": "fx passes",
    "_recursive_joint_graph_passes": "fx passes",
    "_recursive_post_grad_passes": "fx passes",
    "min_cut_rematerialization_partition": "autograd",
    "inductor_compile": "lowering",
    "GraphLowering.run": "lowering",
    "Scheduler.__init__": "fusion",
    "Scheduler.fused_nodes": "fusion",
    "GraphLowering.compile_to_fn": "codegen",
    "Scheduler.codegen": "codegen",
    "PyCodeCache.load_by_key_path": "build",
    "async_compile.wait": "build",
    "compile_file": "build",
    "tcw.passes": "fx passes",
    "tcw.lowering": "lowering",
    "tcw.fusion": "fusion",
    "tcw.memory": "memory",
    "tcw.codegen": "codegen",
    "tcw.build": "build",
}
"""The stage of torch's phases (`dynamo_timed` names) and of ours; any other phase has its parent's
stage."""

PREDICTION = "prediction"
"""The stage of `predict sm_90` and everything inside it."""


@dataclass(frozen=True)
class PhaseTime:
    """All phases with one name."""

    name: str
    count: int
    seconds: float
    """Their time; a phase inside one of the same name is not counted twice."""
    self_seconds: float
    """Excludes nested phases and build threads, so these add up."""
    beside_seconds: float
    """Their own time on build threads, in parallel to the compile."""


@dataclass(frozen=True)
class StageTime:
    """Own time of one stage."""

    stage: str
    """`capture`, `autograd`, `fx passes`, `lowering`, `fusion`, `codegen`, `build`; `other` for
    phases that this torch names differently."""
    seconds: float
    cpu_seconds: float | None = None
    """CPU seconds of the process meanwhile, including children that it waited for."""


def _stage_of(name: str) -> str:
    return PREDICTION if name.startswith("predict ") else STAGES.get(name, "")


def outwards(phase: Phase, phases: Mapping[int, Phase]) -> list[Phase]:
    """The phase, then those around it. `phases`: by id; a damaged trace may contain a cycle."""
    found = {phase.id: phase}
    parent = phase.parent
    while parent is not None and parent in phases and parent not in found:
        found[parent] = phases[parent]
        parent = phases[parent].parent
    return list(found.values())


class _Forest:
    """Phases by id, with what follows from their nesting."""

    def __init__(self, recording: Recording) -> None:
        self.phases = {phase.id: phase for phase in recording.all(Phase)}
        self.inside: dict[int, float] = defaultdict(float)
        """Seconds of a phase's children."""
        self.inside_cpu: dict[int, float] = defaultdict(float)
        self._stages: dict[int, str] = {}
        for phase in self.phases.values():
            if phase.parent in self.phases:
                self.inside[phase.parent] += phase.seconds
                self.inside_cpu[phase.parent] += phase.cpu_seconds or 0.0

    def own(self, phase: Phase) -> float:
        return max(0.0, phase.seconds - self.inside[phase.id])

    def own_cpu(self, phase: Phase) -> float | None:
        if phase.cpu_seconds is None:
            return None
        return max(0.0, phase.cpu_seconds - self.inside_cpu[phase.id])

    def stage(self, phase: Phase) -> str:
        """The prediction's for all in it; else the nearest stage from the phase outwards."""
        waiting = []
        outer: Phase | None = phase
        while outer is not None and outer.id not in self._stages:
            self._stages[outer.id] = "other"  # until it is known, and for one inside itself
            waiting.append(outer)
            outer = self.phases.get(outer.parent) if outer.parent is not None else None
        stage = self._stages[outer.id] if outer is not None else "other"
        for one in reversed(waiting):
            stage = stage if stage == PREDICTION else _stage_of(one.name) or stage
            self._stages[one.id] = stage
        return stage if waiting else self._stages[phase.id]

    def build_threads(self) -> set[int]:
        """Threads that only build kernels."""
        roots: dict[int, set[str]] = defaultdict(set)
        for phase in self.phases.values():
            if phase.parent not in self.phases:
                roots[phase.thread].add(self.stage(phase))
        return {thread for thread, stages in roots.items() if stages == {"build"}}


def phase_times(recording: Recording) -> tuple[PhaseTime, ...]:
    """One entry per name, most own time first."""
    forest = _Forest(recording)
    beside = forest.build_threads()
    times = []
    for name, same in grouped((phase.name, phase) for phase in forest.phases.values()).items():
        whole = [
            phase.seconds
            for phase in same
            if all(outer.name != name for outer in outwards(phase, forest.phases)[1:])
        ]
        own = [forest.own(phase) for phase in same if phase.thread not in beside]
        aside = [forest.own(phase) for phase in same if phase.thread in beside]
        times.append(PhaseTime(name, len(same), *(math.fsum(of) for of in (whole, own, aside))))
    return tuple(
        sorted(times, key=lambda time: (-time.self_seconds, -time.beside_seconds, time.name))
    )


def stage_times(recording: Recording) -> tuple[StageTime, ...]:
    """Own time by stage, most first, without build threads and without what tcw itself adds (the
    prediction of GPU code)."""
    forest = _Forest(recording)
    beside = forest.build_threads()
    seconds: dict[str, float] = defaultdict(float)
    cpu: dict[str, float | None] = {}
    for phase in forest.phases.values():
        stage = forest.stage(phase)
        if phase.thread not in beside and stage != PREDICTION:
            seconds[stage] += forest.own(phase)
            own, before = forest.own_cpu(phase), cpu.get(stage, 0.0)
            cpu[stage] = None if own is None or before is None else before + own
    times = [StageTime(stage, took, cpu[stage]) for stage, took in seconds.items()]
    return tuple(sorted(times, key=lambda time: (-time.seconds, time.stage)))


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
