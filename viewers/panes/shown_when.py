"""The arrangement for a place where the compile waits."""

from __future__ import annotations

from tcw.compiler.protocol.decision import FUSE, SAVE, split_id
from tcw.compiler.trace.records import CacheLookup, GraphBreak, Recompile, Waiting, WhatIf
from tcw.viewers.panes.view import View


def arrangement_for(view: View, waiting: Waiting) -> str:
    """The arrangement that shows what it waits at."""
    if waiting.decision:
        asked = view.recording.decisions.asked.get(waiting.decision)
        kind = asked.kind if asked is not None else split_id(waiting.decision)[1]
        return {FUSE: "fusion", SAVE: "autograd"}.get(kind, "decision")
    if waiting.kind == "event":
        last = max(
            (view.recording.last(kind) for kind in (GraphBreak, Recompile, CacheLookup)),
            key=lambda record: record.at if record is not None else -1.0,
        )
        if isinstance(last, GraphBreak):
            return "break"
        return "recompiles" if isinstance(last, Recompile) else "overview"
    if waiting.kind == "end" and view.derived.profile is not None:
        return "profile"
    if waiting.kind == "end":
        compared = view.base is not None or view.recording.last(WhatIf) is not None
        return "what-if" if compared else "overview"
    if waiting.kind in ("graph", "pass"):
        return "graph"
    if waiting.kind == "start":
        return "start"
    if waiting.stage == "capture" or waiting.kind == "step":
        return "steps"
    if waiting.stage in ("codegen", "build"):
        return "kernels"
    return waiting.stage if waiting.stage in ("autograd", "fusion", "memory") else "source"
