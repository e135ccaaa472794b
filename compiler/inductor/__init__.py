"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from tcw.compiler.control.hooks import RecordingHook
from tcw.compiler.inductor import (
    autotuning,
    cache_lookups,
    cached_code,
    caches_off,
    codegen,
    collectives,
    cudagraph_hook,
    fusion,
    fusion_cpp,
    kernel_builds,
    kernel_lines,
    loop_origins,
    lowering,
    memory_plan,
    passes,
    scheduler_nodes,
    shadow,
    stage_starts,
    stopping_early,
    timed_phases,
    triton_builds,
)

HOOKS: tuple[RecordingHook, ...] = (
    timed_phases.HOOK,
    stopping_early.HOOK,
    passes.HOOK,
    cache_lookups.HOOK,
    autotuning.HOOK,
    caches_off.HOOK,
    lowering.HOOK,
    loop_origins.HOOK,
    scheduler_nodes.HOOK,
    fusion.HOOK,
    fusion_cpp.HOOK,
    memory_plan.HOOK,
    kernel_lines.HOOK,
    codegen.HOOK,
    collectives.HOOK,
    cached_code.HOOK,
    kernel_builds.HOOK,
    triton_builds.HOOK,
    cudagraph_hook.HOOK,
    shadow.HOOK,
    stage_starts.HOOK,
)
