"""TorchDynamo, recorded: frames, graphs, graph breaks, guards, recompiles, steps."""

from __future__ import annotations

from tcw.compiler.capture import (
    cache_entries,
    ddp,
    eager_collectives,
    fallbacks,
    frames,
    graph_breaks,
    graphs,
    guards,
    recompiles,
    settings,
    skips,
    steps,
    stopping,
)
from tcw.compiler.control.hooks import RecordingHook

HOOKS: tuple[RecordingHook, ...] = (
    settings.HOOK,
    frames.HOOK,
    graphs.HOOK,
    ddp.HOOK,
    eager_collectives.HOOK,
    graph_breaks.HOOK,
    guards.HOOK,
    recompiles.HOOK,
    cache_entries.HOOK,
    skips.HOOK,
    fallbacks.HOOK,
    steps.HOOK,
    stopping.HOOK,
)
"""The order matters: `frames` tracks which compile the other hooks are in."""
