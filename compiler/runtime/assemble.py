"""Builds an artifact from a plan and its kernels' code: the text of the unit and of the wrapper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from tcw.compiler.codegen.cpp.isa import Isa, detect
from tcw.compiler.codegen.launcher.planned import Forms, segment_functions
from tcw.compiler.codegen.launcher.segment import KernelSite, methods_text, segment_text
from tcw.compiler.codegen.launcher.sources import device_text, interface_text
from tcw.compiler.codegen.unit import Unit
from tcw.compiler.loops.nest import Program
from tcw.compiler.memory.plan import Plan
from tcw.compiler.runtime.artifact import Artifact, KernelText, SegmentEntry
from tcw.compiler.runtime.toolchain import launching_flags, unit_flags
from tcw.compiler.runtime.wrapper import wrapper_text


def assemble(
    plan: Plan,
    program: Program,
    unit: Unit,
    isa: Isa | None = None,
    extra: object = None,
    device: int = -1,
    arch: str = "",
) -> Artifact:
    """The artifact of a graph, not yet built.

    `extra` is JSON-able and available again on a warm start. `device`: index of the GPU whose
    kernels the unit launches, and `arch` its architecture; -1 for the CPU.
    """
    forms = Forms(program, plan)
    segments = segment_functions(plan, forms, unit.kernels, device)
    direct = any(segment.boxed for segment in segments)
    wrapper, bindings = ("", ()) if direct else wrapper_text(plan, forms, segments)
    code = f"{interface_text()}\n"
    if unit.device is not None:
        code += f"{device_text()}\n"
    kernels = dict(_kernels(unit, code.count("\n")))
    code += f"{unit.code}\n"
    sites: list[KernelSite] = []
    for segment in segments:
        above = code.count("\n")
        text, calls = segment_text(segment)
        sites += [replace(call, line=above + call.line) for call in calls]
        code += f"{text}\n"
    return Artifact(
        name=program.graph.name,
        unit=code + methods_text(segments) if segments else "",
        sites=tuple(sites),
        kernels=kernels,
        flags=launching_flags() if unit.device is not None else unit_flags(isa or detect()),
        libraries=unit.libraries,
        device=device,
        arch=arch,
        module=unit.device.text if unit.device is not None else "",
        device_kernels=unit.device.kernels if unit.device is not None else (),
        segments=tuple(SegmentEntry(segment.name, segment.boxed) for segment in segments),
        entry=segments[0].name if direct else "",
        wrapper=wrapper,
        bindings=bindings,
        extra=msgspec.Raw(msgspec.json.encode(extra)),
    )


def _kernels(unit: Unit, above: int) -> Iterator[tuple[str, KernelText]]:
    """Each function of a unit whose code stands below this many lines."""
    for name, function in unit.kernels.values():
        line = above + unit.first_lines[name]
        lines = function.body.count("\n")
        yield name, KernelText(line, lines, function.parts, function.launches)
