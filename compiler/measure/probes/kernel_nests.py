"""Times each nest of kernels with several loop nests: in rounds of its own, on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.measure.compiled.engine_graphs import EngineGraph
from tcw.compiler.measure.compiled.inductor_graphs import InductorGraph
from tcw.compiler.measure.compiled.named_graphs import named_graphs
from tcw.compiler.measure.host import reason_of
from tcw.compiler.measure.probes.nest_clocks import NestClocks
from tcw.compiler.measure.probes.part_clocks import PartClocks, several_parts
from tcw.compiler.measure.rounds.noise import timed
from tcw.compiler.measure.rounds.rounds import RoundsPlan, in_rounds, warm_up
from tcw.compiler.trace.loop_nests import outermost_loops
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Kernel, KernelNests, NestTime, Record

ROUNDS = 7
MOST = 16
"""The maximum number of kernels that are built again: each takes seconds."""


@dataclass
class _Timed:
    """One kernel with clocks around its nests."""

    kernel: Kernel
    lines: Sequence[int]
    """The outermost loop of each, in the kernel's text."""
    rounds: list[list[float]] = field(default_factory=list)

    def record(self, call: int) -> KernelNests:
        each = zip(*self.rounds, strict=True)
        found = zip(self.lines, each, strict=True)
        nests = tuple(NestTime(line=line, time=timed(times)) for line, times in found)
        return _record(self.kernel, call, nests=nests)


_Read = Callable[[], list[float]]
_Clock = tuple[_Timed, Callable[[ExitStack], _Read]]
"""A kernel, and the function that starts its clocks."""


def kernel_nests(
    of_inductor: Sequence[InductorGraph],
    of_engine: Sequence[EngineGraph],
    records: Sequence[Record],
    run: Callable[[], object],
    call: int,
) -> Iterator[KernelNests]:
    """`run` makes the profiled call once, on fresh inputs. What cannot be built is reported."""
    kernels = [one for one in records if isinstance(one, Kernel) and one.language == "cpp"]
    clocks: list[_Clock] = []
    graphs = named_graphs(of_inductor, records).graphs if of_inductor else {}
    for made in (*_of_inductor(graphs, kernels, call), *_of_engine(of_engine, kernels, call)):
        if isinstance(made, KernelNests):
            yield made
        else:
            clocks.append(made)

    def once(_: object = None) -> list[list[float]]:
        with ExitStack() as stack:
            reads = [start(stack) for _, start in clocks]
            run()
            return [read() for read in reads]

    def make(_: object, turn: int, count: int) -> None:
        for (one, _), seconds in zip(clocks, once(), strict=True):
            one.rounds.append(seconds)

    if clocks:
        warm_up([run], once)
        in_rounds([[run]], make, RoundsPlan(ROUNDS))
    for one, _ in clocks:
        yield one.record(call)


def _of_inductor(
    graphs: Mapping[str, InductorGraph], kernels: Sequence[Kernel], call: int
) -> Iterator[_Clock | KernelNests]:
    built = 0
    for id, graph in graphs.items():
        for name in graph.kernels:
            kernel = _only(kernels, id, name)
            if kernel is None or len(outermost_loops(graph.text(name))) < 2:
                continue
            built += 1
            if built > MOST:
                yield _record(kernel, call, reason=f"{MOST} kernels before it were built again")
                continue
            try:
                clock = NestClocks(graph.module, graph.source, name)
            except Exception as error:  # of torch, of the compiler
                yield _not_built(kernel, call, error)
                continue

            def start(stack: ExitStack, clock: NestClocks = clock) -> _Read:
                return stack.enter_context(clock.timing())

            yield _Timed(kernel, [nest.line for nest in clock.nests]), start


def _of_engine(
    graphs: Sequence[EngineGraph], kernels: Sequence[Kernel], call: int
) -> Iterator[_Clock | KernelNests]:
    for graph in graphs:
        try:
            clocks = PartClocks(graph)
        except NotAlone as error:
            names = (_only(kernels, graph.graph, name) for name in graph.kernels)
            yield from (_not_built(kernel, call, error) for kernel in names if kernel)
            continue
        entered: list[Callable[[str], list[float]]] = []
        for name in several_parts(clocks):
            kernel = _only(kernels, graph.graph, name)
            if kernel is None:
                continue

            def start(
                stack: ExitStack,
                clocks: PartClocks = clocks,
                name: str = name,
                entered: list[Any] = entered,
            ) -> _Read:
                if not entered:  # one for all kernels of the graph
                    entered.append(stack.enter_context(clocks.timing()))
                    stack.callback(entered.clear)
                read = entered[0]
                return lambda: read(name)

            yield _Timed(kernel, clocks.loops(name)), start


def _only(kernels: Sequence[Kernel], graph: str, name: str) -> Kernel | None:
    """The kernel with this name; None if several share the function: their times cannot be
    separated."""
    found = [one for one in kernels if base_graph(one.graph) == graph and one.name == name]
    return found[0] if len(found) == 1 else None


def _not_built(kernel: Kernel, call: int, error: Exception) -> KernelNests:
    reason = reason_of(error, 200)
    return _record(kernel, call, reason=f"it could not be built with clocks: {reason}")


def _record(kernel: Kernel, call: int, **found: Any) -> KernelNests:
    return KernelNests(graph=base_graph(kernel.graph), kernel=kernel.id, call=call, **found)
