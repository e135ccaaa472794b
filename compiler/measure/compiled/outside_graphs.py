"""The part of a compiled call that is outside its compiled graphs: guards, wrappers, Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import mean, median
from time import perf_counter
from typing import Any

from tcw.compiler.measure.calls.runs import Prepare
from tcw.compiler.measure.compiled.alone import Boxed, CompiledGraph
from tcw.compiler.measure.compiled.engine_graphs import AtenGraph, engine_graphs
from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.rounds.rounds import RoundsPlan, in_rounds, warm_up

PLAN = RoundsPlan(rounds=40, seconds=0.2, least=10, patience=1.0)


class CalledGraphs:
    """The graphs that one engine compiled."""

    def __init__(self, *collected: Sequence[CompiledGraph]) -> None:
        self._collected = collected
        self._inside = 0.0
        self._depth = 0

    def seconds_outside(self, runs: Sequence[Prepare]) -> tuple[float, float] | None:
        """Of a call the time outside the graphs and the whole time, each the median over rounds and
        the mean of these runs; None if no graph is known. On a CPU: a device goes on after a graph
        has returned."""
        graphs = [graph for part in self._collected for graph in part]
        if not graphs:
            return None
        outside: list[list[float]] = [[] for _ in runs]
        whole: list[list[float]] = [[] for _ in runs]

        def once(place: int, _turn: int = 0, _count: int = 1) -> None:
            run = runs[place]()
            self._inside = 0.0
            began = perf_counter()
            result = run()
            took = perf_counter() - began
            whole[place].append(took)
            outside[place].append(took - self._inside)
            del result

        with ExitStack() as stack:
            for graph in graphs:
                stack.enter_context(graph.replaced(self._clocked(graph.call)))
            warm_up(range(len(runs)), once)
            for seconds in (*outside, *whole):
                seconds.clear()
            in_rounds([[place] for place in range(len(runs))], once, PLAN)
        return mean(map(median, outside)), mean(map(median, whole))

    def _clocked(self, call: Boxed) -> Boxed:
        """`call`, whose time is noted; that of a graph within a graph once."""

        def clocked(arguments: list[Any]) -> Any:
            self._depth += 1
            began = perf_counter()
            try:
                return call(arguments)
            finally:
                self._depth -= 1
                if not self._depth:
                    self._inside += perf_counter() - began

        return clocked


@contextmanager
def called_graphs() -> Iterator[CalledGraphs]:
    """The graphs that are compiled, or loaded from a cache, inside the block."""
    left: list[AtenGraph] = []
    with inductor_graphs(keep_arguments=False) as inductor, engine_graphs(False, left) as engine:
        yield CalledGraphs(inductor, engine, left)
