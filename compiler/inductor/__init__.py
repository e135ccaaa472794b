"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from compiler.control.hooks import Hook
from compiler.inductor import caches, passes, phases

HOOKS: tuple[Hook, ...] = (
    phases.HOOK,
    passes.HOOK,
    caches.HOOK,
)
