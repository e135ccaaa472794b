"""Observes a graph that our own engine left to ATen, while the user's call runs it.

The graph's own Python is compiled again, with a clock around each operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter_ns
from typing import Any

import torch

from tcw.compiler.engine.aten import AsItIs, calls_aten
from tcw.compiler.graphs.nodes import target_name
from tcw.compiler.measure.compiled.redirected import Redirected
from tcw.compiler.measure.probes.clock import Clock, HostClock, timed_by
from tcw.compiler.measure.probes.clocked_wrapper import Statement, surrounded
from tcw.compiler.measure.probes.graph_probe import GraphStep, See
from tcw.compiler.measure.probes.stamps import NOTE, NOW, STAMP, cost_of_stamps, noting, stamped

Said = Callable[[int, Statement], tuple[str, str]]


class AtenGraph(Redirected):
    """One graph that was left to ATen."""

    def __init__(self, graph: str, left: AsItIs) -> None:
        super().__init__(left.call)
        self.graph = graph
        self.left = left
        self.module = left.module


class AtenProbe:
    """A `GraphProbe` of a graph that was left to ATen. Its steps are nodes of the lowered graph."""

    unmeasured = ""

    def __init__(self, graph: AtenGraph) -> None:
        self.graph = graph.graph
        self._graph = graph
        self.nodes: list[str] = []
        """The node name of each step."""
        self._parts: list[list[tuple[str, int]]] = []
        """For each step: (name, index) of the nodes that are an item of its result."""
        self.steps: Sequence[GraphStep] = tuple(self._steps())
        self.memory = AtenMemory(self.nodes, self._parts)

    @contextmanager
    def timing(self, clock: Clock, base: int) -> Iterator[None]:
        """See `GraphProbe`."""
        with self._graph.replaced(
            self._stamped(clock, base)
            if isinstance(clock, HostClock)
            else self._clocked(clock, base)
        ):
            yield

    def _clocked(self, clock: Clock, base: int) -> Callable[[list[Any]], Any]:
        """Instrument for a clock that takes no host times: a device clock, which reads ranges."""

        def around(index: int, _: Statement) -> tuple[str, str]:
            return f"_start({base + 1 + index})", f"_stop({base + 1 + index})"

        timed = self._rewritten(around, {"_start": clock.start, "_stop": clock.stop})
        return timed_by(timed, clock, base)

    def _stamped(self, clock: HostClock, base: int) -> Callable[[list[Any]], Any]:
        times: list[int] = []
        keys: list[int] = []

        def around(index: int, _: Statement) -> tuple[str, str]:
            keys.append(base + 1 + index)
            return NOTE, NOTE

        timed = self._rewritten(around, {STAMP: times.append, NOW: perf_counter_ns})
        cost_of_stamps()  # measured now, not while a call is timed
        return noting(timed, clock, base, times.clear, times.copy, partial(stamped, keys))

    @contextmanager
    def observing(self, see: See, before: See | None = None) -> Iterator[None]:
        """See `GraphProbe`: the tensors are the step's arguments, and afterwards also its results.

        `before` is called before each step. Exceptions of either propagate out of the call.
        """

        def starts(index: int, values: dict[str, Any]) -> None:
            if before is not None:
                before(self.steps[index], tensors_of(values))

        def ended(index: int, values: dict[str, Any]) -> None:
            made = values.get(self.nodes[index])
            if isinstance(made, (tuple, list)):
                values |= {name: made[place] for name, place in self._parts[index]}
            see(self.steps[index], tensors_of(values))

        names = {"_starts": starts, "_ended": ended}
        with self._graph.replaced(self._rewritten(said, names)):
            yield

    def _steps(self) -> Iterator[GraphStep]:
        for node in self._graph.module.graph.nodes:
            if calls_aten(node):
                name = target_name(node.target)
                yield GraphStep(len(self.nodes), "aten", name, node.format_node() or "")
                self.nodes.append(node.name)
                self._parts.append(
                    [
                        (user.name, user.args[1])
                        for user in node.users
                        if user.target is operator.getitem and isinstance(user.args[1], int)
                    ]
                )

    def _rewritten(self, around: Said, names: dict[str, Any]) -> Callable[[list[Any]], Any]:
        """The graph's Python, with statements around each step."""
        module = self._graph.module
        places = {name: index for index, name in enumerate(self.nodes)}

        def surround(statement: Statement) -> tuple[str, str] | None:
            index = places.get(statement.makes[0]) if len(statement.makes) == 1 else None
            return None if index is None else around(index, statement)

        namespace = {**type(module).forward.__globals__, **names}
        exec(surrounded(module.code, surround), namespace)
        forward = namespace["forward"]
        if self._graph.left.takes_list:
            return lambda arguments: forward(module, arguments)

        def run(arguments: list[Any]) -> Any:
            given = tuple(arguments)
            arguments.clear()
            return forward(module, *given)

        return run


class AtenMemory:
    """The variables of the graph's Python: each holds the value of the node of that name."""

    def __init__(self, nodes: Sequence[str], parts: Sequence[Sequence[tuple[str, int]]]) -> None:
        self._made = [
            (name, *(part for part, _ in own)) for name, own in zip(nodes, parts, strict=True)
        ]

    def nodes(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        return dict(tensors)

    def complete(self, step: int) -> Collection[str]:
        return self._made[step]


def said(index: int, statement: Statement) -> tuple[str, str]:
    """Statements that report the tensors around a step to `_starts` and `_ended`."""
    before = ", ".join(f"{name!r}: {name}" for name in statement.reads)
    names = dict.fromkeys((*statement.reads, *statement.makes))
    after = ", ".join(f"{name!r}: {name}" for name in names)
    return f"_starts({index}, {{{before}}})", f"_ended({index}, {{{after}}})"


def tensors_of(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in values.items() if isinstance(one, torch.Tensor)}
