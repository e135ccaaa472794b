"""Interprets a value graph: each node over its whole domain, in order, retaining all values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tcw.compiler.loops.expressions import Expression, Gather, Iota, Load
from tcw.compiler.loops.graph import Buffer, Call, Compute, Graph, Input, Map, Reduce, Scan
from tcw.compiler.loops.interpreter.memory import State
from tcw.compiler.loops.interpreter.operators import Value, reduce, scan, torch_dtype
from tcw.compiler.loops.sizes import product


def run_graph(
    graph: Graph, arguments: Sequence[Any], constants: Mapping[str, Any] | None = None
) -> list[Any]:
    """The graph's outputs for these arguments (CPU tensors, and ints for symbols).

    `constants` maps names of constant inputs to tensors. Mutated inputs are modified in place.
    Raises IndexError for an out-of-range index, ValueError if an argument or a call's result does
    not match the graph, TypeError if operators' dtypes do not agree.
    """
    with torch.no_grad():
        state = State(graph, arguments, constants)
        for node in graph.nodes:
            if isinstance(node, Call):
                state.call(node)
            elif isinstance(node, Buffer):
                state.allocate(node.name, node.dtype, product(node.shape))
            elif not isinstance(node, Input):
                _run(state, node)
        return state.outputs()


def _run(state: State, node: Compute) -> None:
    domain = state.shape(node.domain)
    index = torch.arange(state.size(product(node.domain)))

    def leaf(expression: Expression) -> Value:
        if isinstance(expression, Load):
            return state.read(expression.value, state.through(expression.view, index))
        if isinstance(expression, Gather):
            address = state.through(expression.view, index)
            return state.gathered(expression.value, address, expression, value)
        if isinstance(expression, Iota):
            return state.through(expression.view, index)
        raise TypeError(f"{type(expression).__name__} does not occur in value graphs")

    def value(expression: Expression) -> Value:
        return state.evaluate(expression, leaf)

    result = value(node.expression).expand(index.shape)
    if isinstance(node, Map):
        state.memory[node.name] = result.to(torch_dtype(node.dtype)).contiguous()
    elif isinstance(node, Reduce):
        dims = [d for d, away in enumerate(node.reduced) if not away]
        away = [d for d, away in enumerate(node.reduced) if away]
        kept = state.size(product(node.kept))
        left = state.size(product(node.domain[d] for d in away))
        rows = result.reshape(domain).permute(*dims, *away).reshape(kept, left)
        state.memory[node.name] = reduce(node.op, rows, node.dtype).to(torch_dtype(node.dtype))
    elif isinstance(node, Scan):
        along = scan(node.op, result.reshape(domain), node.digit, node.reverse, node.dtype)
        state.memory[node.name] = along.reshape(-1).to(torch_dtype(node.dtype))
    else:
        address = state.indexed(state.through(node.view, index), node.terms, value)
        state.write(node.buffer, address.expand(index.shape), result, node.mode)
