"""Builds an artifact from a plan and its kernels' code: the text of the unit and of the wrapper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from compiler.codegen.cpp.isa import Isa, detect
from compiler.codegen.cpp.unit import Unit
from compiler.codegen.launcher.forms import Forms
from compiler.codegen.launcher.launcher import interface_text
from compiler.codegen.launcher.planned import segment_functions
from compiler.codegen.launcher.segment import KernelSite, methods_text, segment_text
from compiler.loops.program import Program
from compiler.memory.plan import Plan
from compiler.runtime.artifact import Artifact, KernelText, SegmentEntry
from compiler.runtime.toolchain import unit_flags
from compiler.runtime.wrapper import wrapper_text


def assemble(
    plan: Plan,
    program: Program,
    kernels: Unit,
    isa: Isa | None = None,
    extra: object = None,
) -> Artifact:
    """The artifact of a graph, not yet built.

    `extra` is JSON-able and available again on a warm start.
    """
    forms = Forms(program, plan)
    segments = segment_functions(plan, forms, kernels.kernels)
    direct = any(segment.boxed for segment in segments)
    wrapper, bindings = ("", ()) if direct else wrapper_text(plan, forms, segments)
    unit = f"{interface_text()}\n"
    texts = dict(_texts(kernels, unit.count("\n")))
    unit += f"{kernels.code}\n"
    sites: list[KernelSite] = []
    for segment in segments:
        above = unit.count("\n")
        text, calls = segment_text(segment)
        sites += [replace(call, line=above + call.line) for call in calls]
        unit += f"{text}\n"
    return Artifact(
        name=program.graph.name,
        unit=unit + methods_text(segments) if segments else "",
        sites=tuple(sites),
        kernels=texts,
        flags=unit_flags(isa or detect()),
        libraries=kernels.libraries,
        segments=tuple(SegmentEntry(segment.name, segment.boxed) for segment in segments),
        entry=segments[0].name if direct else "",
        wrapper=wrapper,
        bindings=bindings,
        extra=msgspec.Raw(msgspec.json.encode(extra)),
    )


def _texts(kernels: Unit, above: int) -> Iterator[tuple[str, KernelText]]:
    """Each function of the kernels' code, which stands below this many lines."""
    for name, function in kernels.kernels.values():
        line = above + kernels.first_lines[name]
        yield name, KernelText(line, function.body.count("\n"), function.parts)
