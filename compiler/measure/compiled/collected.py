"""What one engine compiled during a recording: the model, its graphs, the cost of its guards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tcw.compiler.measure.calls.runs import CompiledModel, Twin
from tcw.compiler.measure.compiled.engine_graphs import AtenGraph, EngineGraph, engine_graphs
from tcw.compiler.measure.compiled.guard_cost import GuardCosts, guard_costs
from tcw.compiler.measure.compiled.inductor_graphs import InductorGraph, inductor_graphs
from tcw.compiler.trace.records import Record


@dataclass
class Collected:
    """The graphs of an engine, by who wrote their code."""

    of_inductor: list[InductorGraph] = field(default_factory=list)
    of_engine: list[EngineGraph] = field(default_factory=list)
    left_to_aten: list[AtenGraph] = field(default_factory=list)
    guards: GuardCosts = field(default_factory=GuardCosts)


@contextmanager
def collecting() -> Iterator[Collected]:
    """Collects what is compiled inside the block."""
    left: list[AtenGraph] = []
    with ExitStack() as stack:
        yield Collected(
            of_inductor=stack.enter_context(inductor_graphs(keep_arguments=False)),
            of_engine=stack.enter_context(engine_graphs(False, left)),
            left_to_aten=left,
            guards=stack.enter_context(guard_costs()),
        )


@dataclass
class RecordedModel(CompiledModel):
    """A compiled model whose graphs can be inspected."""

    eager: Twin
    collected: Collected
    records: Sequence[Record]
    """Of this engine's recording."""
    unsettled: int = 0
    """Graphs compiled by the last of the calls that were made so that it compiles no more."""
