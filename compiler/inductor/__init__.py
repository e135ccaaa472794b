"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from compiler.control.hooks import Hook
from compiler.inductor import (
    caches,
    fusion,
    fusion_cpp,
    lowering,
    passes,
    phases,
    replacements,
    scheduler_nodes,
)

HOOKS: tuple[Hook, ...] = (
    phases.HOOK,
    passes.HOOK,
    caches.HOOK,
    replacements.HOOK,
    lowering.HOOK,
    scheduler_nodes.HOOK,
    fusion.HOOK,
    fusion_cpp.HOOK,
)
