"""The stages in order, on one screen: from an ATen graph to a function that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx

from compiler.engine.aten import Compiled, run_as_it_is
from compiler.engine.failures import gave_up
from compiler.trace.records.graph import GraphKind


def compile_graph(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, kind: GraphKind, graph: str
) -> Compiled:
    """Compile one functionalised graph; where our compiler fails, the graph runs as it is.

    `example_inputs` are fake tensors and symbolic integers, in the order of the placeholders;
    `graph` is its id: `0/0/forward`.
    """
    try:
        return _compiled(module, example_inputs, kind=kind, graph=graph)
    except Exception as error:  # whatever it is, the user's model goes on
        gave_up(error, graph)
        return run_as_it_is(module)


def _compiled(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, kind: GraphKind, graph: str
) -> Compiled:
    return run_as_it_is(module)
