"""The reader's place in the trace: the record behind the selection."""

from __future__ import annotations

from compiler.trace import refs
from compiler.trace.records import (
    Failure,
    FrameStart,
    GraphBreak,
    Guards,
    Kernel,
    MemoryPlan,
    Partition,
    Recompile,
    Record,
)
from viewers.panes import autograd, breaks, fusion, guards, memory, recompiles
from viewers.panes.view import View

STAGES: dict[type[Record], str] = {
    FrameStart: "capture",
    GraphBreak: "break",
    Guards: "guards",
    Recompile: "recompile",
    Partition: "autograd",
    MemoryPlan: "memory",
    Kernel: "kernel",
    Failure: "failure",
}


def record_of(view: View, arrangement: str) -> Record | None:
    """The record that the current arrangement shows, by its selection; None if there is none."""
    found = _shown(view, arrangement)
    if found is not None:
        return found
    frames = view.recording.all(FrameStart)
    start = next((frame for frame in frames if frame.compile_id == view.compile_id), None)
    return start or view.recording.failure


def _shown(view: View, arrangement: str) -> Record | None:
    site, cause = breaks.site_of(view), recompiles.cause_of(view)
    if arrangement == "break" and site is not None:
        return next((r for r in site.records if r.compile_id == view.compile_id), site.records[0])
    if arrangement == "recompiles" and cause is not None:
        return cause.frames[0].record
    if arrangement == "fusion":
        pair = fusion.chosen_pair(view)
        return pair.records[-1] if pair is not None and pair.records else None
    if arrangement == "memory":
        return memory.plan_of(view)
    if arrangement == "guards":
        return guards.guards_of(view)
    if arrangement == "autograd":
        return autograd.split_of(view)
    if arrangement in ("kernels", "profile", "region"):
        return view.shown_kernel()
    if arrangement == "source":
        return _selected(view)
    return None


def _selected(view: View) -> Record | None:
    kind = refs.kind(view.ref) if view.ref else ""
    if kind == "k":
        return view.shown_kernel()
    if kind in ("fx", "ir"):
        return view.recording.graphs.get(refs.split_node(view.ref)[0]) or view.graph()
    return view.graph()
