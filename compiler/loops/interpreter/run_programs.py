"""Interprets a program, each nest statement by statement over the grid of its axes, and a value
graph, each node over its whole domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch

from tcw.compiler.loops.expressions import (
    Address,
    Expression,
    Gather,
    Iota,
    Load,
    Local,
    Position,
    Read,
    ReadIndexed,
)
from tcw.compiler.loops.graph import Buffer, Call, Compute, Graph, Input, Map, Reduce, Scan
from tcw.compiler.loops.interpreter.operator_meanings import Value, reduce, scan, torch_dtype
from tcw.compiler.loops.interpreter.state import State
from tcw.compiler.loops.nest import Let, Nest, Program, Reduction, ScanAlong, Write, runs_over
from tcw.compiler.loops.sizes import product


def run_program(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """The outputs for these arguments, the same as `run_graph` on the program's graph."""
    with torch.no_grad():
        state = State(program.graph, arguments, None)
        for memory in program.memories.values():
            if memory.name not in state.memory:
                state.allocate(memory.name, memory.dtype, memory.size)
        for step in program.steps:
            if isinstance(step, Call):
                state.call(step)
            else:
                run_nest(state, step)
        return state.outputs()


def run_nest(state: State, nest: Nest) -> None:
    """Run one nest, statement by statement.

    A statement's value has one dimension per axis, of size 1 if constant along it. The result is
    the same as running element by element, as long as no statement reads memory that an earlier
    one writes at another address (`check_nest`).
    """
    sizes = state.shape(tuple(axis.size for axis in nest.axes)) or (1,)
    values: dict[str, Value] = {}
    for statement in nest.statements:
        if isinstance(statement, Write):
            _write(state, statement, sizes, values)
        else:
            values[statement.name] = _value(state, statement, sizes, values)


def _value(
    state: State,
    statement: Let | Reduction | ScanAlong,
    sizes: tuple[int, ...],
    values: dict[str, Value],
) -> Value:
    element = Grid(state, sizes, runs_over(statement), values).value(statement.expression)
    if isinstance(statement, ScanAlong):
        return scan(statement.op, element, statement.axis, statement.reverse, statement.dtype)
    if isinstance(statement, Let):
        return element
    kept = [axis for axis in range(len(sizes)) if axis not in statement.over]
    count = prod(sizes[axis] for axis in statement.over)
    rows = prod(sizes[axis] for axis in kept if axis in statement.axes)
    elements = element.permute(*kept, *statement.over).reshape(rows, count)
    result = reduce(statement.op, elements, statement.dtype)
    return result.reshape([sizes[a] if a in statement.axes else 1 for a in range(len(sizes))])


def _write(
    state: State, statement: Write, sizes: tuple[int, ...], values: dict[str, Value]
) -> None:
    grid = Grid(state, sizes, statement.axes, values)
    address = state.indexed(grid.place(statement.address), statement.terms, grid.value)
    element = grid.value(statement.expression)
    state.write(statement.buffer, address.reshape(-1), element.reshape(-1), statement.mode)


class Grid:
    """The positions of some axes of a nest; the other axes have size 1."""

    def __init__(
        self, state: State, sizes: tuple[int, ...], axes: tuple[int, ...], values: dict[str, Value]
    ) -> None:
        self.state = state
        self.sizes = sizes
        self.shape = tuple(size if axis in axes else 1 for axis, size in enumerate(sizes))
        self.axes = axes
        self.values = values

    def place(self, address: Address) -> Value:
        """The address at each position."""
        total = torch.full(self.shape, self.state.size(address.offset))
        for axis, stride in enumerate(address.strides):
            if stride == 0 or self.sizes[axis] == 1:
                continue
            if axis not in self.axes:
                raise TypeError(
                    f"an address varies over axis {axis}, its statement over {self.axes}"
                )
            along = [1] * len(self.sizes)
            along[axis] = self.sizes[axis]
            steps = torch.arange(self.sizes[axis]) * self.state.size(stride)
            total = total + steps.reshape(along)
        return self.state.through(address.then, total)

    def value(self, expression: Expression) -> Value:
        """The expression at each position. Raises if it varies over other axes."""
        return self.state.evaluate(expression, self._leaf).expand(self.shape)

    def _leaf(self, expression: Expression) -> Value:
        if isinstance(expression, Local):
            return self.values[expression.name]
        if isinstance(expression, Position):
            return self.place(expression.address)
        if isinstance(expression, Read):
            return self.state.read(expression.buffer, self.place(expression.address))
        if isinstance(expression, ReadIndexed):
            address = self.place(expression.address)
            return self.state.gathered(expression.buffer, address, expression, self.value)
        raise TypeError(f"{type(expression).__name__} does not occur in nests")


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
