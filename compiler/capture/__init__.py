"""TorchDynamo, recorded: frames, graphs, graph breaks, guards, recompiles, steps."""

from __future__ import annotations

from tcw.compiler.capture import (
    cache_entries,
    captured_graphs,
    compile_guards,
    ddp,
    eager_collectives,
    fallbacks,
    frames,
    graph_breaks,
    recompiles,
    settings,
    skips,
    steps,
    stopping_at_front,
)
from tcw.compiler.control.hooks import RecordingHook

HOOKS: tuple[RecordingHook, ...] = tuple(
    module.HOOK
    for module in (
        *(settings, frames, captured_graphs, ddp, eager_collectives, graph_breaks, compile_guards),
        *(recompiles, cache_entries, skips, fallbacks, steps, stopping_at_front),
    )
)
"""The order matters: `frames` tracks which compile the other hooks are in."""
