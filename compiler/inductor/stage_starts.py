"""When a graph enters each of Inductor's stages, in actual order.

Inductor plans memory while it writes the wrapper, so `memory` comes after `codegen`.
"""

from __future__ import annotations

from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, before_call, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id, lowering_graph_id
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.trace.records import Stage, StageStart


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen
    from torch._inductor.graph import GraphLowering
    from torch._inductor.scheduler import Scheduler

    safely = Safely(recorder, HOOK.name)

    def enters(stage: Stage, graph: Any) -> None:
        compile_id = current_compile_id()
        if not compile_id or predicting.get():  # a prediction alongside the compile is not a stage
            return
        flags = [getattr(graph, name, None) for name in ("is_backward", "is_inference")]
        id = lowering_graph_id(*flags) if None not in flags else ""
        recorder.emit(StageStart(stage=stage, compile_id=compile_id, graph=id))

    def entering(owner: Any, name: str, stage: Stage) -> Uninstall:
        def entered(*args: Any, **_: Any) -> None:
            own = bool(args) and isinstance(args[0], GraphLowering)
            safely(enters, stage, args[0] if own else _graph())

        return before_call(owner, name, entered)

    return undo_all(
        entering(GraphLowering, "run", "lowering"),
        entering(Scheduler, "__init__", "fusion"),
        entering(Scheduler, "codegen", "codegen"),
        entering(PythonWrapperCodegen, "memory_plan_reuse", "memory"),
        entering(PyCodeCache, "load_by_key_path", "build"),
    )


def _graph() -> Any:
    """Inductor's current graph; it has no flags if Inductor serves a cached graph."""
    from torch._inductor.virtualized import V

    return V.graph


HOOK = RecordingHook(
    name="stages",
    offers="when a graph enters each of Inductor's stages",
    needs=(
        "torch._inductor.graph:GraphLowering.run",
        "torch._inductor.scheduler:Scheduler.codegen",
        "torch._inductor.codegen.wrapper:PythonWrapperCodegen.memory_plan_reuse",
        "torch._inductor.codecache:PyCodeCache.load_by_key_path",
    ),
    install=install,
    stage="lowering",
    test="worker/test_driven.py",
)
