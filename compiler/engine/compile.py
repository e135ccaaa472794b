"""The stages in order, on one screen: from an ATen graph to a function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx
from torch._dynamo.utils import dynamo_timed

from tcw.compiler.codegen.unit import Unit
from tcw.compiler.engine.cuda_graphs import replayed, skipped
from tcw.compiler.engine.failures import (
    report_failure,
    report_left_to_aten,
    report_no_cache,
    strict,
)
from tcw.compiler.engine.recording import current, watched
from tcw.compiler.engine.records.writer import GraphRecords
from tcw.compiler.engine.saved_numbers import numbers_as_tensors
from tcw.compiler.engine.step_buffers import graph_buffers
from tcw.compiler.engine.targets import DEFAULT, Mode, Target, target_of
from tcw.compiler.engine.uncompiled import (
    Compiled,
    run_uncompiled,
    run_uncompiled_on_demand,
    uncompiled,
)
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.graphs.aten_facts import (
    comments,
    constants,
    donated,
    freed_inputs,
    outputs_of_the_user,
)
from tcw.compiler.loops.nest import Program
from tcw.compiler.loops.verifier import verify_graph, verify_program
from tcw.compiler.lowering.driver import lower
from tcw.compiler.lowering.registry import Unsupported, load_families
from tcw.compiler.memory.planner import plan
from tcw.compiler.protocol.stages import reached
from tcw.compiler.rewrites.channels_last import report_strides
from tcw.compiler.rewrites.order import LOWERED, rewrite
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.compiled import load
from tcw.compiler.runtime.graph_cache import Miss, Outcome, compiled_graph
from tcw.compiler.runtime.graph_key import graph_key
from tcw.compiler.runtime.store import usable_store
from tcw.compiler.trace.records import Stage
from tcw.compiler.trace.records.graph import GraphKind

load_families()  # imported now: a graph's compile is timed


class Ended(Exception):
    """The recording ends before there is anything to call."""


def compile_graph(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    kind: GraphKind,
    graph: str,
    mode: Mode = DEFAULT,
) -> Compiled:
    """Compile one functionalised graph. If our compiler fails, the graph runs uncompiled.

    `example_inputs` are fake tensors and symbolic integers, in the order of the placeholders.
    `graph` is its id, such as `0/0/forward`.
    """
    user_outputs = outputs_of_the_user(module, kind)
    numbers, example_inputs = numbers_as_tensors(module, example_inputs)
    recorder = current().recorder
    if recorder is not None and not recorder.quiet and recorder.settings.device == "cuda":
        from tcw.compiler.engine.predicted import predict

        predict(module, example_inputs, recorder, user_outputs, kind=kind, graph=graph)
    records = GraphRecords(recorder, module, graph, user_outputs)
    try:
        compiled = _compiled(
            module, example_inputs, records, user_outputs, kind=kind, graph=graph, mode=mode
        )
    except Ended:
        compiled = run_uncompiled(module)
    except Exception as error:  # whatever it is, the user's model must keep running
        report_failure(error, graph)
        compiled = _left_to_aten(module, graph, records)
    if kind == "forward":
        report_strides(module)
    return numbers.around(compiled)


def _compiled(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    records: GraphRecords,
    user_outputs: int,
    *,
    kind: GraphKind,
    graph: str,
    mode: Mode,
) -> Compiled:
    recorder, gate = current().recorder, current().gate
    until = recorder.settings.until if recorder is not None else "run"

    def goes_on(stage: Stage) -> None:
        if not reached(stage, until):
            raise Ended
        records.enters(stage)

    goes_on("passes")
    target = target_of(module, tuned=mode.tuned)
    if isinstance(target, str):
        report_left_to_aten(target, graph)
        if mode.cuda_graphs:
            skipped(f"left to ATen ({target})")
        return _left_to_aten(module, graph, records)
    subject = Subject(module, example_inputs, graph, gate, kind, user_outputs, target.device.type)
    with dynamo_timed("tcw.passes"):
        rewrite(LOWERED, subject, recorder, stage="lowered rewrites", graph=graph)

    def make() -> Artifact:
        """Build the artifact, if it is not in the cache."""
        artifact = written(subject, target, records, goes_on, commented=recorder is not None)[2]
        goes_on("build")
        return artifact

    store, refused = usable_store()
    if refused:
        report_no_cache(refused)
    own = constants(module)
    otherwise = run_uncompiled_on_demand(module)
    try:
        with dynamo_timed("tcw.build"):
            if gate.asks or (recorder is not None and gate.overrides):
                # An override must meet its decision, so nothing may come from the cache; and no key
                # contains what the user is about to choose.
                outcome = Outcome(load(make(), store, own, otherwise), Miss("overrides"))
            else:
                settings = {
                    "kind": kind,
                    "donated": " ".join(donated(module, kind)),
                    "let go": " ".join(freed_inputs(module, kind)),
                    "overrides": gate.text(graph),
                    **target.settings,
                }
                key = graph_key(module, settings)
                outcome = compiled_graph(
                    key, store, make, own, otherwise, explain=recorder is not None
                )
                records.looked_up(key.digest, outcome)
    except Unsupported as reason:
        report_left_to_aten(str(reason), graph, reason.node)
        if mode.cuda_graphs:
            skipped(f"left to ATen ({reason})")
        return _left_to_aten(module, graph, records)
    compiled = outcome.compiled
    if mode.cuda_graphs:
        compiled = replayed(compiled, subject)
    return watched(graph, compiled, module)


def written(
    subject: Subject,
    target: Target,
    records: GraphRecords,
    enters: Callable[[Stage], None] = lambda stage: None,
    *,
    commented: bool = True,
) -> tuple[Program, Unit, Artifact]:
    """A rewritten graph through our stages, up to its code: its nests, what was written for them,
    and the artifact. `commented`: the code has the user's lines as comments."""
    module, graph, gate, kind = subject.module, subject.graph, subject.gate, subject.kind
    enters("lowering")
    with dynamo_timed("tcw.lowering"):
        values = lower(module, graph, target.device, gate)
    if strict():
        verify_graph(values)
    records.lowered(module, values)
    enters("fusion")
    with dynamo_timed("tcw.fusion"):
        fusion = fuse(values, gate, records.fusing(), target.machine)
    program = fusion.program
    if strict():
        verify_program(program)
    records.fused(fusion)
    enters("memory")
    with dynamo_timed("tcw.memory"):
        planned = plan(program, gate, donated(module, kind), freed_inputs(module, kind))
    records.planned(program, planned)
    enters("codegen")
    with dynamo_timed("tcw.codegen"):
        code = target.unit(planned, program, comments(module) if commented else None, gate.asker())
        buffers = graph_buffers(program, planned, code.kernels)
        artifact = target.assemble(planned, program, code, buffers)
    records.generated(planned, code, artifact)
    return program, code, artifact


def _left_to_aten(module: fx.GraphModule, graph: str, records: GraphRecords) -> Compiled:
    records.left_to_aten(module)
    return watched(graph, uncompiled(module), module)
