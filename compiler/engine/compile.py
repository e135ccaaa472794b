"""The stages in order, on one screen: from an ATen graph to a function that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx
from torch._dynamo.utils import dynamo_timed

from tcw.compiler.engine.aten import Compiled, as_it_is, run_as_it_is, run_as_it_is_when_asked
from tcw.compiler.engine.channels_last import report_strides
from tcw.compiler.engine.cuda_graphs import replayed, skipped
from tcw.compiler.engine.failures import gave_up, left_to_aten, strict, without_cache
from tcw.compiler.engine.generator_choices import asking
from tcw.compiler.engine.graph_facts import (
    comments,
    constants,
    donated,
    let_go,
    outputs_of_the_user,
)
from tcw.compiler.engine.modes import DEFAULT, Mode
from tcw.compiler.engine.predicted import predict
from tcw.compiler.engine.recording import current, watched
from tcw.compiler.engine.records.writer import GraphRecords
from tcw.compiler.engine.saved_numbers import numbers_as_tensors
from tcw.compiler.engine.step_buffers import graph_buffers
from tcw.compiler.engine.targets import rewrite, target_of
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.loops.verifier import verify_graph, verify_program
from tcw.compiler.lowering.driver import lower
from tcw.compiler.lowering.registry import Unsupported, load_families
from tcw.compiler.memory.planner import plan
from tcw.compiler.protocol.stages import reached
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.cached import Outcome, compiled_graph
from tcw.compiler.runtime.compiled import load
from tcw.compiler.runtime.graph_cache import Miss
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
    predict(module, example_inputs, recorder, user_outputs, kind=kind, graph=graph)
    records = GraphRecords(recorder, module, graph, user_outputs)
    try:
        compiled = _compiled(
            module, example_inputs, records, user_outputs, kind=kind, graph=graph, mode=mode
        )
    except Ended:
        compiled = run_as_it_is(module)
    except Exception as error:  # whatever it is, the user's model must keep running
        gave_up(error, graph)
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

    goes_on("lowering")
    target = target_of(module, tuned=mode.tuned)
    if isinstance(target, str):
        left_to_aten(target, graph)
        if mode.cuda_graphs:
            skipped(f"left to ATen ({target})")
        return _left_to_aten(module, graph, records)
    rewrite(
        module, example_inputs, target, graph=graph, kind=kind, promised=user_outputs, gate=gate
    )

    def make() -> Artifact:
        """Build the artifact, if it is not in the cache."""
        with dynamo_timed("tcw.lowering"):
            values = lower(module, graph, target.device, gate)
        if strict():
            verify_graph(values)
        records.lowered(module, values)
        goes_on("fusion")
        with dynamo_timed("tcw.fusion"):
            fusion = fuse(values, gate, records.fusing(), target.machine)
        if strict():
            verify_program(fusion.program)
        records.fused(fusion)
        goes_on("memory")
        with dynamo_timed("tcw.memory"):
            planned = plan(fusion.program, gate, donated(module, kind), let_go(module, kind))
        records.planned(fusion.program, planned)
        goes_on("codegen")
        with dynamo_timed("tcw.codegen"):
            lines = comments(module) if recorder is not None else None
            code = target.unit(planned, fusion.program, lines, asking(gate))
            buffers = graph_buffers(fusion.program, planned, code.kernels)
            artifact = target.assemble(planned, fusion.program, code, buffers)
        records.generated(planned, code, artifact)
        goes_on("build")
        return artifact

    store, refused = usable_store()
    if refused:
        without_cache(refused)
    own = constants(module)
    otherwise = run_as_it_is_when_asked(module)
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
                    "let go": " ".join(let_go(module, kind)),
                    "overrides": gate.text(graph),
                    **target.settings,
                }
                key = graph_key(module, settings)
                outcome = compiled_graph(
                    key, store, make, own, otherwise, explain=recorder is not None
                )
                records.looked_up(key.digest, outcome)
    except Unsupported as reason:
        left_to_aten(str(reason), graph, reason.node)
        if mode.cuda_graphs:
            skipped(f"left to ATen ({reason})")
        return _left_to_aten(module, graph, records)
    compiled = outcome.compiled
    if mode.cuda_graphs:
        compiled = replayed(compiled, module, kind=kind, graph=graph, gate=gate)
    return watched(graph, compiled, module)


def _left_to_aten(module: fx.GraphModule, graph: str, records: GraphRecords) -> Compiled:
    records.left_to_aten(module)
    return watched(graph, as_it_is(module), module)
