"""AOTAutograd's graphs: joint, forward and backward, or inference.

The joint graph is recorded as the partitioner splits it: after Inductor's joint passes, and before
anyone is asked what to save. Its halves are recorded as the partitioner returns them, the inference
graph as traced. `PassChange` records hold what passes change before and after.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch import fx

from tcw.compiler.autograd.partition import output_names, partition_record
from tcw.compiler.autograd.save import KIND, decide_saved, deciding
from tcw.compiler.autograd.split import Captured, JointSplit, current_split, state
from tcw.compiler.control.hooks import RecordingHook, Uninstall, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.engine.recording import current as listening
from tcw.compiler.graphs.current import (
    backward_in_bucket,
    current_bucket,
    current_compile_id,
    current_graph_id,
    graph_id,
    in_hand,
)
from tcw.compiler.graphs.nodes import describe_graph, user_line
from tcw.compiler.graphs.provenance import (
    captured_origins,
    copied_origins,
    forget_lines,
    forget_made,
    keep_lines,
    lines_of,
    made_in,
    with_inferred_lines,
)
from tcw.compiler.graphs.random_operations import random_operations
from tcw.compiler.protocol.decision import INDUCTOR
from tcw.compiler.trace.records import Graph, StageStart
from tcw.compiler.trace.records.graph import GraphKind

PARTITIONERS = {"min_cut_rematerialization_partition": "min-cut", "default_partition": "default"}


def describe_captured(module: Any) -> Captured:
    """Node names, ordered placeholders and lines of the graph that AOTAutograd receives."""
    graph = getattr(module, "graph", None)
    if not isinstance(graph, fx.Graph):
        return Captured()
    return Captured(
        placeholders=tuple(node.name for node in graph.nodes if node.op == "placeholder"),
        names=frozenset(node.name for node in graph.nodes),
        lines={node.name: line for node in graph.nodes if (line := user_line(node))},
    )


def under_dynamo() -> bool:
    """Whether torch is compiling the user's code. Its pattern matcher also traces its own code
    through AOTAutograd, but without a tracing context."""
    from torch._guards import TracingContext

    return TracingContext.try_get() is not None and bool(current_compile_id())


class AutogradGraphs:
    """Writes the AOTAutograd graphs of one recording."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def traced(self, graph: fx.Graph, kind: GraphKind, prefix: str = "") -> Graph:
        """Record a graph that AOTAutograd traced from the captured graph: joint or inference."""
        compile_id = current_compile_id()
        id = graph_id(compile_id, prefix + kind)
        captured = state.captured[-1] if state.captured else Captured()
        record = describe_graph(
            graph,
            id=id,
            kind=kind,
            compile_id=compile_id,
            recorder=self.recorder,
            parent=compile_id,
            origins=captured_origins(graph, id, captured.names, captured.placeholders),
        )
        return self._kept(with_inferred_lines(record, captured.lines, made_in(id)))

    def half(self, graph: fx.Graph, kind: GraphKind, joint: Graph, prefix: str) -> Graph:
        """Record the forward or backward half of a joint graph."""
        record = describe_graph(
            graph,
            id=graph_id(joint.compile_id, prefix + kind),
            kind=kind,
            compile_id=joint.compile_id,
            recorder=self.recorder,
            parent=joint.id,
            origins=copied_origins(node.name for node in joint.nodes),
        )
        return self._kept(with_inferred_lines(record, lines_of(joint), {}))

    def _kept(self, record: Graph) -> Graph:
        self.recorder.emit(record)
        keep_lines(record)
        return record

    def joint(self, split: JointSplit) -> Graph:
        """The record of a split's joint graph; a repeated cut does not write it again."""
        if split.record is None:
            split.record = self.traced(split.joint.graph, "joint", split.prefix)
        return split.record

    def split(self, split: JointSplit, forward: fx.GraphModule, backward: fx.GraphModule) -> None:
        """Record the halves of a finished split, and the values that cross it."""
        prefix = split.prefix
        joint = self.joint(split)
        forward_record = self.half(forward.graph, "forward", joint, prefix)
        backward_record = self.half(backward.graph, "backward", joint, prefix)
        if split.extraction is not None:
            outputs = output_names(forward.graph)
            self.recorder.emit(
                partition_record(split, outputs, joint, forward_record, backward_record)
            )


def is_main(joint: Any) -> bool:
    """Whether a joint graph is that of the whole compile. torch splits the joint graphs of
    sub-graphs (`torch.cond`, a nested compiled region) before it."""
    if not state.main:
        return False
    main = state.main[-1]
    if joint is main:
        return True
    own, whole = (
        [node.name for node in module.graph.nodes if node.op == "placeholder"]
        for module in (joint, main)
    )
    return own == whole


def sub_graph_prefix(joint: Any) -> str:
    """`sub1/`, `sub2/` … for the joint graphs of sub-graphs, in torch's order; "" for the whole."""
    if is_main(joint):
        return ""
    state.sub_graphs += 1
    return f"sub{state.sub_graphs}/"


def note_random_operations(recorder: Recorder, module: fx.GraphModule) -> None:
    """Record a graph's random operations before Inductor's passes rewrite them."""
    known = recorder.random_operations
    known += [operation for operation in random_operations(module) if operation not in known]


def apply_gate(joint: Any, halves: Any, cut: Callable[[], Any]) -> Any:
    """Apply the gate's decisions to the halves of a joint graph that Inductor has split."""
    gate, graph = listening().gate, current_graph_id()
    if not gate.asks and not gate.chosen(graph, KIND, INDUCTOR):
        return halves
    return decide_saved(joint, halves, cut, gate, graph, INDUCTOR, keep_all=False)


def patch_imported(original: Callable[..., Any], replacement: Callable[..., Any]) -> Uninstall:
    """Replace a function in every module that holds it under its own name."""
    name = original.__name__
    return undo_all(
        *(
            patch(module, name, replacement)
            for module in list(sys.modules.values())
            if getattr(module, "__dict__", {}).get(name) is original
        )
    )


def install(recorder: Recorder) -> Uninstall:
    import torch._functorch.aot_autograd as aot_autograd
    import torch._functorch.partitioners as partitioners
    import torch._inductor.compile_fx  # noqa: F401  so that its references are patched too

    graphs = AutogradGraphs(recorder)
    safely = Safely(recorder, HOOK.name)
    overruled = Safely(recorder, "what is saved", even_quiet=True)
    recorder.graphs_unknown = False

    aot_module_simplified = aot_autograd.aot_module_simplified
    aot_stage2_compile = aot_autograd.aot_stage2_compile

    def module_simplified(mod: Any, *args: Any, **kwargs: Any) -> Any:
        if under_dynamo():
            safely(recorder.emit, StageStart(stage="autograd", compile_id=current_compile_id()))
        if current_bucket() and callable(kwargs.get("bw_compiler")):
            kwargs["bw_compiler"] = backward_in_bucket(kwargs["bw_compiler"])
        state.captured.append(safely(describe_captured, mod) or Captured())
        state.sub_graphs = 0
        try:
            return aot_module_simplified(mod, *args, **kwargs)
        finally:
            state.captured.pop()

    def stage2_compile(
        aot_state: Any, aot_graph_capture: Any, partition_fn: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if not under_dynamo():
            return aot_stage2_compile(aot_state, aot_graph_capture, partition_fn, *args, **kwargs)
        module = getattr(aot_graph_capture, "graph_module", None)
        if isinstance(module, fx.GraphModule):
            safely(note_random_operations, recorder, module)
        splits = bool(getattr(aot_state, "needs_autograd", False))
        if not splits and isinstance(module, fx.GraphModule):
            safely(graphs.traced, module.graph, "inference")
        graph = graph_id(current_compile_id(), "joint" if splits else "inference")
        state.main.append(module)
        try:
            with in_hand(graph):
                return aot_stage2_compile(
                    aot_state, aot_graph_capture, whole(partition_fn), *args, **kwargs
                )
        finally:
            state.main.pop()
            forget_made(graph)

    def record_split(split: JointSplit, module: Any, function: Callable[[], Any]) -> Any:
        split.prefix = safely(sub_graph_prefix, module) or ""
        state.splits.append(split)
        graph = graph_id(current_compile_id(), f"{split.prefix}joint")
        try:
            with in_hand(graph):
                halves = function()
            if split.joint is not None:
                safely(graphs.split, split, *halves)
            return halves
        finally:
            state.splits.pop()
            forget_made(graph)

    def whole(partition_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the function that the backend splits with, which may call one of torch's
        partitioners."""

        def partition(gm: Any, *args: Any, **kwargs: Any) -> Any:
            name = getattr(partition_fn, "__name__", type(partition_fn).__name__)
            split = JointSplit(None, PARTITIONERS.get(name, name))
            return record_split(split, gm, lambda: partition_fn(gm, *args, **kwargs))

        return partition

    def partitioner(original: Callable[..., Any], words: str) -> Callable[..., Any]:
        """Wrap one of torch's partitioners, which is also called directly for a sub-graph."""

        def partition(joint_module: Any, *args: Any, **kwargs: Any) -> Any:
            def cut() -> Any:
                halves = original(joint_module, *args, **kwargs)
                split = current_split()
                if split is not None and split.joint is joint_module:
                    safely(graphs.joint, split)
                return halves

            def decided() -> Any:
                halves = cut()
                if words != "min-cut" or deciding():
                    return halves
                return overruled(apply_gate, joint_module, halves, cut) or halves

            outer = current_split()
            if outer is not None and outer.joint in (None, joint_module):
                outer.joint, outer.partitioner = joint_module, words
                return decided()
            if not under_dynamo():
                return cut()
            return record_split(JointSplit(joint_module, words), joint_module, decided)

        partition.__name__ = original.__name__
        return partition

    undo = [
        patch_imported(aot_module_simplified, module_simplified),
        patch_imported(aot_stage2_compile, stage2_compile),
    ]
    for name, words in PARTITIONERS.items():
        original = getattr(partitioners, name)
        undo.append(patch_imported(original, partitioner(original, words)))

    return undo_all(forget_lines, *undo)


HOOK = RecordingHook(
    name="autograd graphs",
    offers="joint, forward, backward and inference graphs, with the lines they come from",
    needs=(
        "torch._functorch.aot_autograd:aot_module_simplified(mod)",
        "torch._functorch.aot_autograd:aot_stage2_compile(aot_state, aot_graph_capture, "
        "partition_fn)",
        "torch._functorch.partitioners:min_cut_rematerialization_partition(joint_module)",
        "torch._functorch.partitioners:default_partition(joint_module)",
        "torch._guards:TracingContext.try_get",
    ),
    install=install,
    stage="autograd",
    test="autograd/test_graphs.py",
)
