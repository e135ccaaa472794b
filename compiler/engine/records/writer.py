"""What a recording is told while our stages work on a graph; nothing where none is on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from torch import fx

from compiler.codegen.function import Function
from compiler.control.recorder import Recorder
from compiler.control.safely import Safely
from compiler.engine.records.compiled import Compiled
from compiler.engine.records.kernels import kernel_records, name_kernels
from compiler.engine.records.lowered import graph_record, lowered_records
from compiler.engine.records.planned import plan_record
from compiler.graphs.current import current_compile_id
from compiler.loops.graph import Call, Graph
from compiler.loops.nest import Nest
from compiler.loops.program import Program
from compiler.memory.plan import Plan
from compiler.trace.records import Record


class GraphRecords:
    """The records of one graph, stage by stage. An error in here costs a record, never more."""

    def __init__(self, recorder: Recorder | None, module: fx.GraphModule, graph: str) -> None:
        self.recorder = recorder
        if recorder is None:
            return
        self._safely = Safely(recorder, "the tcw engine")
        nodes = {node.name: node for node in module.graph.nodes}
        self._compiled = Compiled(recorder, graph, f"{graph}/lowered", current_compile_id(), nodes)
        self._emit(lambda: [graph_record(self._compiled, module)])

    def lowered(self, graph: Graph) -> None:
        self._emit(lambda: lowered_records(self._compiled, graph))

    def fused(self, program: Program) -> None:
        """`program` after fusion."""

        def records() -> Iterable[Record]:
            name_kernels(self._compiled, program.steps)
            return ()

        self._emit(records)

    def planned(self, program: Program, plan: Plan, user_outputs: int | None) -> None:
        self._emit(lambda: [plan_record(self._compiled, program, plan, user_outputs)])

    def generated(
        self,
        steps: Sequence[Nest | Call],
        functions: Mapping[str, tuple[str, Function]],
        unit: str,
    ) -> None:
        self._emit(lambda: kernel_records(self._compiled, steps, functions, unit))

    def _emit(self, make: Callable[[], Iterable[Record]]) -> None:
        recorder = self.recorder
        if recorder is None:
            return

        def write() -> None:
            for record in make():
                recorder.emit(record)

        self._safely(write)
