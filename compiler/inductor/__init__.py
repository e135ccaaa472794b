"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from tcw.compiler.control.hooks import RecordingHook
from tcw.compiler.inductor import (
    autotuning,
    cached,
    caches,
    codegen,
    collectives,
    cudagraphs,
    fusion,
    fusion_cpp,
    kernel_builds,
    kernel_lines,
    loop_origins,
    lowering,
    memory,
    overrule_caches,
    passes,
    phases,
    scheduler_nodes,
    shadow,
    stage_starts,
    triton_builds,
    until,
)

HOOKS: tuple[RecordingHook, ...] = (
    phases.HOOK,
    until.HOOK,
    passes.HOOK,
    caches.HOOK,
    autotuning.HOOK,
    overrule_caches.HOOK,
    lowering.HOOK,
    loop_origins.HOOK,
    scheduler_nodes.HOOK,
    fusion.HOOK,
    fusion_cpp.HOOK,
    memory.HOOK,
    kernel_lines.HOOK,
    codegen.HOOK,
    collectives.HOOK,
    cached.HOOK,
    kernel_builds.HOOK,
    triton_builds.HOOK,
    cudagraphs.HOOK,
    shadow.HOOK,
    stage_starts.HOOK,
)
