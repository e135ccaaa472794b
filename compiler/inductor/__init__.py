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

HOOKS: tuple[RecordingHook, ...] = tuple(
    module.HOOK
    for module in (
        *(timed_phases, stopping_early, passes, cache_lookups, autotuning, caches_off, lowering),
        *(scheduler_nodes, fusion, fusion_cpp, memory_plan, kernel_lines, codegen),
        *(collectives, cached_code, kernel_builds, triton_builds, cudagraph_hook, shadow),
        stage_starts,
    )
)
