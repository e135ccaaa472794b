"""Passes over a graph as they run: each change, once, with the graph before and after.

Passes nest, and stages of passes enclose them. A change belongs to the innermost pass in which it
happened. Both engines report their passes here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import fx

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.graphs.provenance import MadeNode, made_in, note_made
from tcw.compiler.graphs.text import Snapshot, render, same_graph, snapshot
from tcw.compiler.trace.records import PassChange


@dataclass(eq=False)
class Pass:
    """A running pass."""

    module: fx.GraphModule
    graph: str
    name: str
    known: Snapshot
    """The graph as of the last recorded change, or as the pass found it."""
    since: float


@dataclass(eq=False)
class PassStage(Pass):
    """A stage of passes, which sees each node created or replaced in its graph."""

    created: list[str] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    """`created` as a set, for lookup."""
    stop: Callable[[], None] = lambda: None


class _Running(threading.local):
    def __init__(self) -> None:
        self.passes: list[Pass] = []


class WatchedPasses:
    """Watches the passes of one recording, with one stack per thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._running = _Running()
        self._printed: tuple[Snapshot, str] = ([], "")

    @property
    def running(self) -> bool:
        """Whether this thread is in a pass."""
        return bool(self._running.passes)

    def stage_starts(self, module: fx.GraphModule, name: str, graph: str) -> PassStage:
        """A stage of passes starts on the graph of this id, or on a sub-graph of the current."""
        outer = self._running.passes[-1] if self._running.passes else None
        if outer is not None and outer.module is not module:
            graph = f"{outer.graph}/{_name_in(outer.module, module)}"
        stage = PassStage(module, graph, name, *self._begin(module))
        self._running.passes.append(stage)
        self._watch(stage)
        return stage

    def _watch(self, stage: PassStage) -> None:
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

    def pass_starts(self, module: Any, name: str) -> Pass | None:
        """A named pass starts. Returns None if its graph is not the current one: torch also runs
        passes on the patterns that it registers."""
        if not self._running.passes or self._running.passes[-1].module is not module:
            return None
        outer = self._running.passes[-1]
        started = Pass(module, outer.graph, name, *self._begin(module))
        self._running.passes.append(started)
        return started

    def _now(self) -> float:
        """A clock in seconds that stops while the recording waits for the user."""
        return time.perf_counter() - self.recorder.aside_seconds

    def _begin(self, module: fx.GraphModule) -> tuple[Snapshot, float]:
        """The graph as a pass finds it; first records changes of the enclosing pass so far."""
        now = self._now()
        rows = snapshot(module.graph)
        if self._running.passes and self._running.passes[-1].module is module:
            self._changed(self._running.passes[-1], rows, now)
        return rows, now

    def ends(self, ended: Pass) -> None:
        """A pass ends, along with those inside it that an exception left open."""
        running = self._running.passes
        if isinstance(ended, PassStage):
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

    def _changed(self, running: Pass, after: Snapshot, now: float) -> None:
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
        stage = next((p for p in reversed(self._running.passes) if isinstance(p, PassStage)), None)
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
