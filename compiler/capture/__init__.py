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

HOOKS: tuple[RecordingHook, ...] = (
    settings.HOOK,
    frames.HOOK,
    captured_graphs.HOOK,
    ddp.HOOK,
    eager_collectives.HOOK,
    graph_breaks.HOOK,
    compile_guards.HOOK,
    recompiles.HOOK,
    cache_entries.HOOK,
    skips.HOOK,
    fallbacks.HOOK,
    steps.HOOK,
    stopping_at_front.HOOK,
)
"""The order matters: `frames` tracks which compile the other hooks are in."""
