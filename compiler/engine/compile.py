"""The stages in order, on one screen: from an ATen graph to a function that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.utils import dynamo_timed

from compiler.codegen.cpp.isa import detect
from compiler.codegen.cpp.unit import unit
from compiler.codegen.cpp.vocabulary import Vocabulary
from compiler.control.decisions import Gate
from compiler.control.stages import reached
from compiler.engine.aten import Compiled, run_as_it_is
from compiler.engine.channels_last import channels_last, report_strides
from compiler.engine.failures import gave_up
from compiler.engine.lines import user_lines
from compiler.engine.recording import current
from compiler.engine.records.writer import GraphRecords
from compiler.fusion.fuse import fuse
from compiler.lowering.driver import load_families, lower
from compiler.memory.planner import plan
from compiler.runtime.artifact import Artifact
from compiler.runtime.assemble import assemble
from compiler.runtime.cached import compiled_graph
from compiler.runtime.compiled import load
from compiler.runtime.graph_key import graph_key
from compiler.runtime.store import open_store
from compiler.trace.records.graph import GraphKind

load_families()  # now: when a graph comes, our packages may be out of reach (tcw.py)


def compile_graph(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, kind: GraphKind, graph: str
) -> Compiled:
    """Compile one functionalised graph; where our compiler fails, the graph runs as it is.

    `example_inputs` are fake tensors and symbolic integers, in the order of the placeholders;
    `graph` is its id: `0/0/forward`.
    """
    try:
        compiled = _compiled(module, example_inputs, kind=kind, graph=graph)
    except Exception as error:  # whatever it is, the user's model goes on
        gave_up(error, graph)
        compiled = None
    if kind == "forward":
        report_strides(module)
    return compiled or run_as_it_is(module)


def _compiled(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, kind: GraphKind, graph: str
) -> Compiled | None:
    """None where the recording ends before there is something to call."""
    recorder, gate = current().recorder, current().gate
    until = recorder.settings.until if recorder is not None else "run"
    user_outputs = outputs_of_the_user(module, kind)
    channels_last(module, example_inputs, graph=graph, promised=user_outputs, gate=gate)
    constants = constants_of(module)
    store = open_store()
    if recorder is None:
        with dynamo_timed("tcw.cache"):
            key = graph_key(
                module, {"kind": kind, "overrides": repr(sorted(gate.overrides.items()))}
            )
        records = GraphRecords(None, module, graph, user_outputs)

        def make() -> Artifact:
            made = _made(module, graph, gate, records, "codegen")
            assert made is not None
            return made

        return compiled_graph(key, store, make, constants, run_as_it_is(module)).compiled.call

    records = GraphRecords(recorder, module, graph, user_outputs)
    artifact = _made(module, graph, gate, records, until)
    if artifact is None or not reached("build", until):
        return None
    with dynamo_timed("tcw.build"):
        return load(artifact, store, constants, run_as_it_is(module)).call


def _made(
    module: fx.GraphModule, graph: str, gate: Gate, records: GraphRecords, until: Any
) -> Artifact | None:
    """Lowering to codegen; None where the recording ends before."""
    if not reached("lowering", until):
        return None
    with dynamo_timed("tcw.lowering"):
        values = lower(module, graph)
    records.lowered(module, values)
    if not reached("fusion", until):
        return None

    with dynamo_timed("tcw.fusion"):
        fusion = fuse(values, gate)
    records.fused(fusion)
    if not reached("memory", until):
        return None

    with dynamo_timed("tcw.memory"):
        memory = plan(fusion.program, gate)
    records.planned(fusion.program, memory)
    if not reached("codegen", until):
        return None

    with dynamo_timed("tcw.codegen"):
        isa = detect()
        code = unit(memory, fusion.program, Vocabulary(isa), user_lines(module))
        artifact = assemble(memory, fusion.program, code.kernels, code.code, isa)
    records.generated(fusion.program.steps, code.kernels, artifact.unit)
    return artifact


def constants_of(module: fx.GraphModule) -> Mapping[str, Any]:
    """The tensors that the graph itself holds, by the name of the attribute."""
    found = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            value: Any = module
            for part in str(node.target).split("."):
                value = getattr(value, part)
            found[str(node.target)] = value
    return found


def outputs_of_the_user(module: fx.GraphModule, kind: GraphKind) -> int:
    """How many of the graph's outputs, the first ones, are not kept for the backward."""
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    count = len(output.args[0])
    context = torch._guards.TracingContext.try_get()
    if kind != "forward" or context is None:
        return count
    found = getattr(context.fw_metadata, "num_forward", None)
    return found if isinstance(found, int) else count
