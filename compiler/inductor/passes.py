"""FX passes: each one that changed a graph, with the graph before and after.

Inductor names its passes through `GraphTransformObserver` (torch/fx/passes), which nest. The stages
of passes (`joint_graph_passes`, `post_grad_passes`, …) enclose them all. A change belongs to the
innermost pass in which it happened, and is recorded once. Changes that a stage makes outside every
named pass are recorded under the stage's own name.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
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
from tcw.compiler.graphs.provenance import MadeNode, forget_made, made_in, note_made
from tcw.compiler.graphs.text import Snapshot, render, same_graph, snapshot
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.trace.records import PassChange

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
PATTERNS = ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry")


@dataclass(eq=False)
class _Pass:
    """A running pass."""

    module: fx.GraphModule
    graph: str
    name: str
    known: Snapshot
    """The graph as of the last recorded change, or as the pass found it."""
    since: float


@dataclass(eq=False)
class _Stage(_Pass):
    """A stage of passes, which sees each node created or replaced in its graph."""

    created: list[str] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    """`created` as a set, for lookup."""
    stop: Callable[[], None] = lambda: None


class _Running(threading.local):
    def __init__(self) -> None:
        self.passes: list[_Pass] = []


class WatchedPasses:
    """Watches the passes of one recording, with one stack per thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._running = _Running()
        self._printed: tuple[Snapshot, str] = ([], "")

    def stage_starts(self, module: fx.GraphModule, name: str) -> _Stage:
        """One of torch's stages starts on a graph, or on a sub-graph of the current one."""
        outer = self._running.passes[-1] if self._running.passes else None
        graph = current_graph_id()
        if outer is not None and outer.module is not module:
            graph = f"{outer.graph}/{_name_in(outer.module, module)}"
        stage = _Stage(module, graph, name, *self._begin(module))
        self._running.passes.append(stage)
        self._watch(stage)
        return stage

    def _watch(self, stage: _Stage) -> None:
        """Note what each new node of the stage replaces, as torch's own observer does."""

        def on_create(node: fx.Node) -> None:
            stage.created.append(node.name)
            stage.own.add(node.name)

        def on_replace(old: fx.Node, new: str, user: fx.Node) -> None:
            if new in stage.own and new not in made_in(stage.graph):
                running = self._running.passes[-1] if self._running.passes else stage
                note_made(stage.graph, [new], MadeNode(running.name, (old,)))

        def leave(module: fx.GraphModule) -> None:
            module._unregister_create_node_hook(on_create)
            module._unregister_replace_node_hook(on_replace)
            module._unregister_deepcopy_hook(leave)  # a copy is another graph

        stage.module._register_create_node_hook(on_create)
        stage.module._register_replace_node_hook(on_replace)
        stage.module._register_deepcopy_hook(leave)
        stage.stop = partial(leave, stage.module)

    def pass_starts(self, module: Any, name: str) -> _Pass | None:
        """A named pass starts. Returns None if its graph is not the current one: torch also runs
        passes on the patterns that it registers."""
        if not self._running.passes or self._running.passes[-1].module is not module:
            return None
        outer = self._running.passes[-1]
        started = _Pass(module, outer.graph, name, *self._begin(module))
        self._running.passes.append(started)
        return started

    def _now(self) -> float:
        """A clock in seconds that stops while the recording waits for the user."""
        return time.perf_counter() - self.recorder.aside_seconds

    def _begin(self, module: fx.GraphModule) -> tuple[Snapshot, float]:
        """The graph as a pass finds it; first records changes of the enclosing pass so far."""
        now = self._now()
        found = snapshot(module.graph)
        if self._running.passes and self._running.passes[-1].module is module:
            self._changed(self._running.passes[-1], found, now)
        return found, now

    def ends(self, ended: _Pass) -> None:
        """A pass ends, along with those inside it that an exception left open."""
        running = self._running.passes
        if isinstance(ended, _Stage):
            ended.stop()
        if ended not in running:
            return
        del running[running.index(ended) + 1 :]
        now = self._now()
        after = snapshot(ended.module.graph)
        self._changed(ended, after, now)
        running.pop()
        if running and running[-1].module is ended.module:
            running[-1].known, running[-1].since = after, now
        if not running:
            self._printed = ([], "")

    def _changed(self, running: _Pass, after: Snapshot, now: float) -> None:
        """Record what the pass itself changed since `known`, if anything."""
        before, since = running.known, running.since
        running.known, running.since = after, now
        if same_graph(before, after):
            return
        old = {(row.name, id(row.target)): row.name for row in before}
        new = {(row.name, id(row.target)): row.name for row in after}
        printed, before_text = self._printed
        if not same_graph(printed, before):
            before_text = render(before)
        after_text = render(after)
        self._printed = (after, after_text)
        if before_text == after_text:
            return
        added = tuple(name for key, name in new.items() if key not in old)
        # what a node replaced is known by now; for the others, only the pass is
        noted = made_in(running.graph)
        note_made(running.graph, [n for n in added if n not in noted], MadeNode(running.name, ()))
        index = self._running.passes.index(running)
        self.recorder.emit(
            PassChange(
                graph=running.graph,
                name=running.name,
                before=self.recorder.text(before_text),
                after=self.recorder.text(after_text),
                added=added,
                removed=tuple(name for key, name in old.items() if key not in new),
                seconds=now - since,
                parent=self._running.passes[index - 1].name if index else "",
            )
        )

    def replaces(self, match: Any, graph: fx.Graph, pattern: str) -> Callable[[], None] | None:
        """A pattern is about to be replaced in the current graph. Call the result afterwards."""
        running = self._running.passes[-1] if self._running.passes else None
        if running is None or running.module.graph is not graph:
            return None
        stage = next((p for p in reversed(self._running.passes) if isinstance(p, _Stage)), None)
        if stage is None:
            return None
        replaced = tuple(match.nodes)
        before = len(stage.created)

        def done() -> None:
            created = stage.created[before:]
            note_made(running.graph, created, MadeNode(f"{running.name}: {pattern}", replaced))

        return done


def _name_in(parent: fx.GraphModule, child: fx.GraphModule) -> str:
    return next((name for name, module in parent.named_children() if module is child), "?")


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
    running: dict[int, _Pass] = {}

    def stage(place: str, name: str) -> Uninstall:
        @contextmanager
        def staged(gm: Any, *_: Any, **__: Any) -> Iterator[None]:
            watched = isinstance(gm, fx.GraphModule) and current_compile_id()
            started = safely(passes.stage_starts, gm, name) if watched else None
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
