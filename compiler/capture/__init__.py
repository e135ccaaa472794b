"""TorchDynamo, recorded: frames, graphs, graph breaks, guards, recompiles, steps."""

from __future__ import annotations

from compiler.capture import guards
from compiler.control.hooks import Hook

HOOKS: tuple[Hook, ...] = (
    guards.HOOK,
)  # fmt: skip
