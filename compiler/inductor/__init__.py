"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from compiler.control.hooks import Hook
from compiler.inductor import shadow

HOOKS: tuple[Hook, ...] = (shadow.HOOK,)
