"""PyTorch's Inductor, recorded: passes, lowering, fusion, memory, kernels, caches, phases."""

from __future__ import annotations

from compiler.control.hooks import Hook

HOOKS: tuple[Hook, ...] = ()
