"""TorchDynamo, recorded: frames, graphs, graph breaks, guards, recompiles, steps."""

from __future__ import annotations

from compiler.capture import cache_entries, guards, recompiles
from compiler.control.hooks import Hook

HOOKS: tuple[Hook, ...] = (
    guards.HOOK,
    recompiles.HOOK,
    cache_entries.HOOK,
)  # fmt: skip
