"""FX passes: each one that changed a graph, with the graph before and after.

Inductor names its passes through `GraphTransformObserver` (torch/fx/passes), which nest. The stages
of passes (`joint_graph_passes`, `post_grad_passes`, …) enclose them all. A change belongs to the
innermost pass in which it happened, and is recorded once. Changes that a stage makes outside every
named pass are recorded under the stage's own name.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import fx

from tcw.compiler.control.hooks import (
    RecordingHook,
    Uninstall,
    after_call,
    around_call,
    before_call,
    during,
    patch,
    undo_all,
)
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import (
    current_compile_id,
    current_graph_id,
    in_hand,
    lowering_graph_id,
)
from tcw.compiler.graphs.provenance import forget_made
from tcw.compiler.graphs.watched_passes import Pass, WatchedPasses
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.trace.records import StageStart

STAGES = {
    "torch._inductor.compile_fx:_recursive_pre_grad_passes": "pre_grad_passes",
    "torch._functorch._aot_autograd.graph_compile:_apply_tensorify_python_scalars": (
        "tensorify_python_scalars"
    ),
    "torch._inductor.compile_fx:_recursive_joint_graph_passes": "joint_graph_passes",
    "torch._inductor.compile_fx:view_to_reshape": "view_to_reshape",
    "torch._inductor.compile_fx:_recursive_post_grad_passes": "post_grad_passes",
}
"""Functions of torch that run passes on the graph that is their first argument."""
LAST = "post_grad_passes"
"""The stage of passes over a graph that is lowered."""
PATTERNS = ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry")


def pattern_name(entry: Any) -> str:
    """torch's name for a pattern: its own, its handler's, or the operator that it starts at."""
    name = getattr(entry, "pattern_name", None)
    if isinstance(name, str) and name:
        return name
    handler = getattr(entry, "handler", None)
    found = getattr(handler, "__name__", "") or getattr(
        getattr(handler, "func", None), "__name__", ""
    )
    if found:
        return str(found)
    functions = getattr(getattr(entry, "pattern", None), "fns", None) or ()
    return f"replacement of {functions[0]}" if functions else type(entry).__name__


def install(recorder: Recorder) -> Uninstall:
    import torch._inductor.compile_fx as compile_fx
    import torch._inductor.pattern_matcher as pattern_matcher
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    passes = WatchedPasses(recorder)
    safely = Safely(recorder, HOOK.name)
    running: dict[int, Pass] = {}

    def enters() -> None:
        if not predicting.get():  # a prediction alongside the compile is not a stage
            compile_id, graph = current_compile_id(), current_graph_id()
            recorder.emit(StageStart(stage="passes", compile_id=compile_id, graph=graph))

    def stage(place: str, name: str) -> Uninstall:
        @contextmanager
        def staged(gm: Any, *_: Any, **__: Any) -> Iterator[None]:
            watched = isinstance(gm, fx.GraphModule) and current_compile_id()
            if watched and name == LAST and not passes.running:
                safely(enters)
            started = safely(passes.stage_starts, gm, name, current_graph_id()) if watched else None
            try:
                yield
            finally:
                if started is not None:
                    safely(passes.ends, started)

        module, _, attribute = place.partition(":")
        return around_call(importlib.import_module(module), attribute, staged)

    @contextmanager
    def codegen(*_: Any, **kwargs: Any) -> Iterator[None]:
        graph = lowering_graph_id(kwargs.get("is_backward"), kwargs.get("is_inference"))
        if arch := predicting.get():
            graph = f"{graph}@{arch}"
        try:
            with in_hand(graph):
                yield
        finally:
            forget_made(graph)

    def entered(_result: Any, observer: Any) -> None:
        started = safely(passes.pass_starts, observer.gm, str(observer.passname))
        if started is not None:
            running[id(observer)] = started

    def left(observer: Any, *_error: Any) -> None:
        started = running.pop(id(observer), None)
        if started is not None:
            safely(passes.ends, started)

    @contextmanager
    def replaced(node: Any, replace_with: Any, *_: Any, **__: Any) -> Iterator[None]:
        module = node.graph.owning_module
        hooks = getattr(module, "_replace_hooks", None)
        if isinstance(replace_with, fx.Node) or not hooks:
            yield
            return
        # tensorify_python_scalars puts numbers in the place of nodes; torch asks what replaces a
        # node for its name if there is a hook
        with during(patch(module, "_replace_hooks", [])):
            yield

    @contextmanager
    def applied(entry: Any, match: Any, graph: Any, *_: Any, **__: Any) -> Iterator[None]:
        done = safely(passes.replaces, match, graph, pattern_name(entry))
        try:
            yield
        finally:
            if done is not None:
                safely(done)

    return undo_all(
        *(stage(place, name) for place, name in STAGES.items()),
        around_call(compile_fx, "fx_codegen_and_compile", codegen),
        after_call(GraphTransformObserver, "__enter__", entered),
        before_call(GraphTransformObserver, "__exit__", left),
        around_call(fx.Node, "replace_all_uses_with", replaced),
        *(around_call(getattr(pattern_matcher, name), "apply", applied) for name in PATTERNS),
    )


HOOK = RecordingHook(
    name="passes",
    offers="FX passes that changed a graph, with the graph before and after",
    needs=(
        "torch.fx.passes.graph_transform_observer:GraphTransformObserver.__enter__",
        "torch.fx.passes.graph_transform_observer:GraphTransformObserver.__exit__",
        *STAGES,
        "torch._inductor.compile_fx:fx_codegen_and_compile",
        "torch.fx:GraphModule._register_create_node_hook",
        "torch.fx:GraphModule._register_replace_node_hook",
        "torch.fx:Node.replace_all_uses_with(replace_with)",
        "torch.fx:GraphModule._register_deepcopy_hook",
        *(f"torch._inductor.pattern_matcher:{name}.apply(match, graph)" for name in PATTERNS),
    ),
    install=install,
    stage="autograd",
    test="inductor/test_passes.py",
)
