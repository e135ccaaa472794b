"""Writes records while our stages process a graph; does nothing without a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torch import fx

from tcw.compiler.codegen.unit import Unit
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.engine.records.compiled import GraphState
from tcw.compiler.engine.records.fused import FusionRecords, groups_record, take_members
from tcw.compiler.engine.records.generated import call_records, kernel_records, name_kernels
from tcw.compiler.engine.records.lowered import graph_record, lowered_records
from tcw.compiler.engine.records.planned import plan_record, steps_of
from tcw.compiler.fusion.fuse import Fusion
from tcw.compiler.graphs.current import current_compile_id
from tcw.compiler.loops.graph import Graph
from tcw.compiler.loops.nest import Program
from tcw.compiler.memory.plan import Plan
from tcw.compiler.protocol.stages import reached
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.graph_cache import Hit, Outcome, miss_in_words
from tcw.compiler.trace.records import CacheLookup, Record, Stage, StageStart


class GraphRecords:
    """The records of one graph, stage by stage. An error here loses a record, nothing more."""

    def __init__(
        self,
        recorder: Recorder | None,
        module: fx.GraphModule,
        graph: str,
        user_outputs: int,
        *,
        predicted: bool = False,
    ) -> None:
        self.recorder = None if recorder is None or recorder.quiet else recorder
        self._generated = False
        if self.recorder is not None:
            self._safely = Safely(self.recorder, "the tcw engine")
            parents = frozenset(node.name for node in module.graph.nodes)
            self._compiled = GraphState(
                self.recorder, graph, current_compile_id(), parents, user_outputs, predicted
            )

    def enters(self, stage: Stage) -> None:
        """The graph enters a stage."""
        self._emit(
            lambda: [
                StageStart(
                    stage=stage, compile_id=self._compiled.compile_id, graph=self._compiled.base
                )
            ]
        )

    def lowered(self, module: fx.GraphModule, graph: Graph) -> None:
        """`module` is the graph as it was lowered."""

        def records() -> Iterator[Record]:
            self._compiled.nodes = {node.name: node for node in module.graph.nodes}
            yield graph_record(self._compiled, module)
            yield from lowered_records(self._compiled, graph)

        self._emit(records)

    def fusing(self) -> FusionRecords | None:
        """The listener for fusion, or None if nothing is recorded."""
        if self.recorder is None:
            return None
        return FusionRecords(self._compiled, lambda make: self._emit(lambda: (make(),)))

    def fused(self, fusion: Fusion) -> None:
        def records() -> Iterator[Record]:
            take_members(self._compiled, fusion)
            name_kernels(self._compiled, fusion.program.steps)
            yield groups_record(self._compiled, fusion)

        self._emit(records)

    def planned(self, program: Program, plan: Plan) -> None:
        self._emit(lambda: [plan_record(self._compiled, program, plan)])

    def generated(self, plan: Plan, unit: Unit, artifact: Artifact) -> None:
        self._generated = True
        self._emit(lambda: kernel_records(self._compiled, steps_of(plan), unit.kernels, artifact))

    def kernel_id(self, step: str) -> str:
        """The id of a nest's kernel: `k4`."""
        return self._compiled.kernels[step].partition(" ")[0]

    def left_to_aten(self, module: fx.GraphModule) -> None:
        """The graph's own Python runs: record each of its calls, as far as the recording goes.

        Does nothing if code was generated that could not be built.
        """
        if self.recorder is None or self._generated:
            return
        until = self.recorder.settings.until

        def records() -> Iterator[Record]:
            if not self._compiled.described:
                self._compiled.nodes = {node.name: node for node in module.graph.nodes}
                yield graph_record(self._compiled, module)
            if reached("codegen", until):
                yield from call_records(self._compiled)

        self._emit(records)

    def looked_up(self, key: str, outcome: Outcome) -> None:
        def records() -> Iterator[Record]:
            compile_id, graph = self._compiled.compile_id, self._compiled.base
            found = outcome.found
            yield CacheLookup(
                cache="tcw graph",
                verdict="hit" if isinstance(found, Hit) else "miss",
                compile_id=compile_id,
                graph=graph,
                key=key,
                missed=miss_in_words(found),
            )
            artifact = outcome.compiled.artifact
            if artifact.unit:
                yield CacheLookup(
                    cache="kernel build",
                    verdict="hit" if outcome.compiled.hit else "miss",
                    compile_id=compile_id,
                    graph=graph,
                    key=artifact.library,
                    missed="" if outcome.compiled.hit else "the library has to be built",
                    saved_seconds=artifact.build_cpu_seconds if outcome.compiled.hit else None,
                )

        self._emit(records)
        if self.recorder is not None:
            if isinstance(outcome.found, Hit):
                self.recorder.warn_once(
                    "some graphs were served from the cache of the tcw engine: their lowering, "
                    f"fusion and memory plan are not recorded; {self.recorder.beyond_caches}"
                )
            if outcome.compiled.without_launcher:
                self.recorder.warn_once(
                    f"kernels are called through Python: {outcome.compiled.without_launcher}"
                )

    def _emit(self, make: Callable[[], Iterable[Record]]) -> None:
        recorder = self.recorder
        if recorder is None:
            return

        def write() -> None:
            for record in make():
                recorder.emit(record)

        self._safely(write)
