"""Which arrangement belongs to a place where the compile is stopped."""

from __future__ import annotations

from compiler.control.decisions import FUSE, SAVE, split_id
from compiler.trace.records import CacheLookup, GraphBreak, Recompile, Waiting, WhatIf
from viewers.panes.arrangement import ARRANGEMENTS
from viewers.panes.view import View


def arrangement_for(view: View, waiting: Waiting) -> str:
    """The first arrangement that there is of those that show what it waits at."""
    return next(name for name in _wanted(view, waiting) if name in ARRANGEMENTS)


def _wanted(view: View, waiting: Waiting) -> tuple[str, ...]:
    if waiting.decision:
        asked = view.recording.decisions.asked.get(waiting.decision)
        kind = asked.kind if asked is not None else split_id(waiting.decision)[1]
        return {FUSE: ("fusion",), SAVE: ("autograd",)}.get(kind, ("decision", "fusion"))
    if waiting.kind == "event":
        last = max(
            (view.recording.last(kind) for kind in (GraphBreak, Recompile, CacheLookup)),
            key=lambda record: record.at if record is not None else -1.0,
        )
        if isinstance(last, GraphBreak):
            return ("break",)
        return ("recompiles",) if isinstance(last, Recompile) else ("overview",)
    if waiting.kind == "end" and view.facts.profile is not None:
        return ("profile",)
    if waiting.kind == "end":
        compared = view.base is not None or view.recording.last(WhatIf) is not None
        return ("what-if", "overview") if compared else ("overview",)
    if waiting.kind in ("graph", "pass"):
        return ("graph", "source")
    if waiting.kind == "start":
        return ("start",)
    if waiting.stage == "capture" or waiting.kind == "step":
        return ("steps", "source")
    by_stage = {"autograd": "autograd", "fusion": "fusion", "memory": "memory", "load": "source"}
    if waiting.stage in ("codegen", "build"):
        return ("kernels", "source")
    return (by_stage.get(waiting.stage, "source"), "source")
