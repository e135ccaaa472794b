"""TorchDynamo, recorded: frames, graphs, graph breaks, guards, recompiles, steps."""

from __future__ import annotations

from compiler.capture import fallbacks, frames, graph_breaks, graphs, skips, steps
from compiler.control.hooks import Hook

HOOKS: tuple[Hook, ...] = (
    frames.HOOK,
    graphs.HOOK,
    graph_breaks.HOOK,
    skips.HOOK,
    fallbacks.HOOK,
    steps.HOOK,
)
"""In this order: `frames` says which compile the others are in."""
