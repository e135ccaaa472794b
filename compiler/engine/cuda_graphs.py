"""Which graphs are replayed as CUDA graphs: `mode="reduce-overhead"`, as with Inductor.

A graph that cannot be captured is reported with the reason and the user's line, in the record and
in the words that torch uses for Inductor's (`check_for_skip` and its helpers in
torch/_inductor/cudagraph_utils.py).
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import torch
from torch import fx

from tcw.compiler.engine.recording import current
from tcw.compiler.engine.uncompiled import calls_aten
from tcw.compiler.graphs.aten_facts import donated, outputs_of_the_user, static_inputs
from tcw.compiler.graphs.current import current_compile_id
from tcw.compiler.graphs.nodes import user_line
from tcw.compiler.rewrites.subject import Subject, choose
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.compiled import Compiled
from tcw.compiler.runtime.gpu.graph_replay import About, CudaGraphs, NewRecording
from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.records import CudagraphRecording, CudagraphSkip

KIND = "cuda-graph"
REPLAY = "replay"
LAUNCH = "launch"
MEANS = "one launch for the whole graph, or one for each kernel and library call"

_UNSAFE = (
    torch.Tag.cudagraph_unsafe,
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
)


def replayed(compiled: Compiled, subject: Subject) -> Compiled:
    """The graph with `replayed` set, or as it is if it is not replayed; a skip is recorded."""
    module, kind, graph = subject.module, subject.kind, subject.graph
    found = obstacle(module)
    if found is not None:
        skipped(found[0], found[1], graph=graph)
        return compiled
    if not _wanted(compiled.artifact, subject):
        return compiled
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    places = {node.name: place for place, node in enumerate(inputs)}
    written = {places[name] for name in (*_written(module), *donated(module, kind))}
    about = About(
        in_place=frozenset(static_inputs(kind)),
        saved=frozenset(
            place
            for place, node in enumerate(inputs)
            if kind == "backward" and "tangents" not in str(node.target)
        ),
        written=frozenset(written),
        loose=outputs_of_the_user(module, kind) if kind == "forward" else 0,
        symbolic=any(_is_symbolic(node.meta.get("val")) for node in inputs),
        device=compiled.artifact.device,
    )
    graphs = CudaGraphs(
        compiled.call,
        about,
        lambda reason: skipped(reason, graph=graph),
        made=lambda made: recorded(made, graph),
    )

    def call(arguments: list[Any]) -> Any:
        return graphs(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    return replace(compiled, replayed=call)


def obstacle(module: fx.GraphModule) -> tuple[str, fx.Node | None] | None:
    """(why a graph cannot be captured, the node at fault); None if nothing is known to prevent
    it."""
    for node in module.graph.nodes:
        for value in _tensors(node.meta.get("val")):
            if value.device.type != "cuda":
                return f"{value.device.type} device ({node.name})", _user_of(node)
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            return f"incompatible ops ({target.name()})", node
        if isinstance(target, torch._ops.OpOverload) and any(tag in target.tags for tag in _UNSAFE):
            return f"incompatible ops ({target})", node
    return None


def skipped(reason: str, node: fx.Node | None = None, graph: str = "") -> None:
    """Record that a graph, or a call of it, is not replayed. At a run without a recording, only
    the speed tells."""
    recorder = current().recorder
    if recorder is None:
        return
    recorder.emit(
        CudagraphSkip(
            reason=reason,
            compile_id=compile_of(graph) or current_compile_id(),
            location=user_line(node),
            graph=graph,
            call=recorder.call,
        )
    )


def recorded(made: NewRecording, graph: str) -> None:
    """Record that a call of a graph was recorded as a CUDA graph."""
    recorder = current().recorder
    if recorder is None:
        return
    recorder.emit(
        CudagraphRecording(
            graph=graph,
            compile_id=compile_of(graph),
            call=recorder.call,
            **asdict(made),
        )
    )


def _wanted(artifact: Artifact, subject: Subject) -> bool:
    calls = [node.name for node in subject.module.graph.nodes if calls_aten(node)]
    launches = _launches(artifact)
    default = REPLAY if launches > 1 else LAUNCH
    if not calls:
        return default == REPLAY
    chosen = choose(
        subject,
        kind=KIND,
        nodes=calls,
        default=default,
        choices=(REPLAY, LAUNCH),
        rule="several-launches" if launches > 1 else "one-launch",
        reason=f"a call launches {launches} kernels and library calls",
        numbers={"launches": launches},
        means=MEANS,
    )
    return chosen == REPLAY


def _launches(artifact: Artifact) -> int:
    """Launches and library calls of one call."""
    kernels = sum(len(artifact.kernels[site.function].launches) for site in artifact.sites)
    names = {binding.name for binding in artifact.bindings if binding.kind == "operation"}
    lines = artifact.wrapper.split("\n")
    return kernels + sum(1 for line in lines if any(f"{name}(" in line for name in names))


def _written(module: fx.GraphModule) -> set[str]:
    """Inputs that the graph writes: functionalisation leaves copies into them."""
    found: set[str] = set()
    for node in module.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        for argument, given in zip(node.target._schema.arguments, node.args, strict=False):
            info = argument.alias_info
            if info is not None and info.is_write and isinstance(given, fx.Node):
                found.add(given.name)
    inputs = {node.name for node in module.graph.nodes if node.op == "placeholder"}
    return found & inputs


def _user_of(node: fx.Node) -> fx.Node:
    """Inputs have no line: that of the first operation that reads it is the user's."""
    if node.op == "call_function":
        return node
    return next((user for user in node.users if user.meta.get("stack_trace")), node)


def _tensors(value: Any) -> list[torch.Tensor]:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return [one for one in values if isinstance(one, torch.Tensor)]


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(not isinstance(size, int) for size in (*value.shape, *value.stride()))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
