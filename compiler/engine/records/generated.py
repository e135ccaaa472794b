"""Records of generated code: one kernel per loop nest, one per call, and the unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from tcw.compiler.codegen.unit import Function
from tcw.compiler.engine.records.compiled import GraphState
from tcw.compiler.engine.uncompiled import calls_aten
from tcw.compiler.graphs.nodes import target_name
from tcw.compiler.loops.graph import DRAWS, Call
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.printer import nest_text
from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.trace.records import Kernel, KernelLine, NestLoops, Record, Wrapper


def name_kernels(compiled: GraphState, steps: Sequence[Nest | Call]) -> None:
    """Assign every step its id and label: `k4 softmax`."""
    for step in steps:
        origins = step.origins() if isinstance(step, Nest) else step.origins
        words = compiled.label(origins) or (step.label if isinstance(step, Nest) else step.target)
        compiled.kernels[step.name] = f"{compiled.recorder.next_kernel()} {words}"


def kernel_records(
    compiled: GraphState,
    steps: Sequence[Nest | Call],
    functions: Mapping[str, tuple[str, Function]],
    artifact: Artifact,
) -> Iterator[Record]:
    """The records of the steps, in plan order, and of the unit and the wrapper.

    `functions`: name of a nest -> name and code of its function, which several nests may share.
    """
    for number, step in enumerate(steps):
        id, _, label = compiled.kernels[step.name].partition(" ")
        if isinstance(step, Call):
            yield _call(compiled, id, label, number, step)
        else:
            yield _nest(compiled, id, label, number, step, functions.get(step.name))
    texts: tuple[tuple[Literal["cpp", "python"], str], ...] = (
        ("python", artifact.module),
        ("cpp", artifact.unit),
        ("python", artifact.wrapper),
    )
    for language, text in texts:
        if text:
            words = compiled.recorder.text(text)
            yield Wrapper(
                graph=compiled.id, language=language, text=words, predicted=compiled.predicted
            )


def _nest(
    compiled: GraphState,
    id: str,
    label: str,
    number: int,
    nest: Nest,
    found: tuple[str, Function] | None,
) -> Kernel:
    name, function = found if found is not None else (nest.name, None)
    nodes = compiled.members.get(nest.name, ())
    origins = compiled.in_order(nest.origins())
    locations, _ = compiled.lines(origins)
    return Kernel(
        id=id,
        graph=compiled.id,
        predicted=compiled.predicted,
        name=name,
        label=label,
        language="triton" if function and function.shown else "cpp",
        text=compiled.recorder.text(function.shown or function.named(name)) if function else "",
        nodes=nodes,
        origins=origins,
        locations=locations,
        lines=_lines(compiled, function) if function else (),
        no_line="" if locations else "none of its nodes has a source line",
        loops=function.loops if function else (),
        loop_nests=1,
        nests=(NestLoops(nodes=nodes, text=compiled.recorder.text(nest_text(nest))),),
        step=number,
        steps=(number,),
    )


def _call(compiled: GraphState, id: str, label: str, number: int, call: Call) -> Kernel:
    origins = compiled.in_order(call.origins)
    locations, _ = compiled.lines(origins)
    return Kernel(
        id=id,
        graph=compiled.id,
        predicted=compiled.predicted,
        name=call.target,
        label=label,
        language="rng" if call.target.startswith(DRAWS) else "aten",
        nodes=compiled.members.get(call.name, ()),
        origins=origins,
        locations=locations,
        no_line="" if locations else "none of its nodes has a source line",
        step=number,
        steps=(number,),
    )


def call_records(compiled: GraphState) -> Iterator[Record]:
    """One kernel per call in the graph's own Python, views included, each as a step."""
    calls = [node for node in compiled.nodes.values() if calls_aten(node)]
    for number, node in enumerate(calls):
        locations, _ = compiled.lines((node.name,))
        yield Kernel(
            id=compiled.recorder.next_kernel(),
            graph=compiled.id,
            name=target_name(node.target),
            label=compiled.label((node.name,)) or target_name(node.target),
            language="aten",
            origins=(node.name,),
            locations=locations,
            no_line="" if locations else "its node has no source line",
            step=number,
            steps=(number,),
        )


def _lines(compiled: GraphState, function: Function) -> tuple[KernelLine, ...]:
    found = []
    for number, names in function.lines:
        origins = compiled.in_order(names)
        locations, inferred = compiled.lines(origins)
        found.append(KernelLine(line=number, nodes=origins, locations=locations, inferred=inferred))
    return tuple(found)
