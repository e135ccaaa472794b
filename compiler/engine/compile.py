"""The stages in order, on one screen: from an ATen graph to a function that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.utils import dynamo_timed

from compiler.control.stages import reached
from compiler.engine.aten import Compiled, run_as_it_is
from compiler.engine.channels_last import channels_last, report_strides
from compiler.engine.failures import gave_up
from compiler.engine.recording import current
from compiler.engine.records.writer import GraphRecords
from compiler.fusion.fuse import fuse
from compiler.lowering.driver import load_families, lower
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
    records = GraphRecords(recorder, module, graph, user_outputs)
    if not reached("lowering", until):
        return None

    with dynamo_timed("tcw.lowering"):
        channels_last(module, example_inputs, graph=graph, promised=user_outputs, gate=gate)
        values = lower(module, graph)
    records.lowered(module, values)
    if not reached("fusion", until):
        return None

    with dynamo_timed("tcw.fusion"):
        fusion = fuse(values, gate)
    records.fused(fusion)
    return None


def outputs_of_the_user(module: fx.GraphModule, kind: GraphKind) -> int:
    """How many of the graph's outputs, the first ones, are not kept for the backward."""
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    count = len(output.args[0])
    context = torch._guards.TracingContext.try_get()
    if kind != "forward" or context is None:
        return count
    found = getattr(context.fw_metadata, "num_forward", None)
    return found if isinstance(found, int) else count
