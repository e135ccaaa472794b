"""The output of one code generation: kernels and calls, collected until the text is final."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.inductor.code_nests import nests_of
from tcw.compiler.inductor.kernel_lines import Origin
from tcw.compiler.inductor.lowered_graphs import Lowering
from tcw.compiler.trace.loop_nests import loop_lines
from tcw.compiler.trace.records import Kernel, KernelLine, Location, NestLoops


@dataclass
class Draft:
    """A kernel or library call during code generation."""

    id: str
    name: str
    language: Literal["cpp", "triton", "aten"]
    lowering: Lowering
    label: str = ""
    text: str = ""
    nodes: dict[str, None] = field(default_factory=dict)
    """Scheduler nodes, from every place that calls it."""
    origins: dict[str, None] = field(default_factory=dict)
    line_origins: dict[int, dict[Origin, None]] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)
    nests: list[NestLoops] = field(default_factory=list)
    no_line: str = ""


@dataclass
class Generation:
    """The code of one `GraphLowering`, including the subgraphs that it calls inline."""

    recorder: Recorder
    lowering: Lowering
    drafts: list[Draft] = field(default_factory=list)
    by_name: dict[str, Draft] = field(default_factory=dict)
    calls: dict[tuple[int, int], Draft] = field(default_factory=dict)
    """Library calls, by (`id` of the wrapper, index of the call's first line in it)."""

    def write(self) -> None:
        """Write a record for each kernel and call."""
        for draft in self.drafts:
            self.recorder.emit(kernel_record(draft, self.recorder))


class Generations(threading.local):
    """The generations in progress on this thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[Generation] = []


generations = Generations()


def kernel_record(draft: Draft, recorder: Recorder) -> Kernel:
    """The record of one kernel, its lines traced to nodes and to the user's lines."""
    lowering = draft.lowering
    origins = tuple(draft.origins)
    locations, _ = lowering.lines(origins)
    lines = tuple(
        kernel_line(number, found, lowering) for number, found in sorted(draft.line_origins.items())
    )
    no_line = "" if locations else draft.no_line or why_no_line(origins, lowering)
    return Kernel(
        id=draft.id,
        graph=lowering.id,
        name=draft.name,
        label=draft.label,
        language=draft.language,
        text=recorder.text(draft.text),
        nodes=tuple(draft.nodes),
        origins=origins,
        locations=locations,
        lines=lines,
        no_line=no_line,
        loops=loop_lines(draft.text) if draft.language == "cpp" else (),
        loop_nests=nests_of(draft.text, draft.language),
        nests=tuple(draft.nests),
        predicted=lowering.predicted,
        step=draft.steps[0] if draft.steps else None,
        steps=tuple(draft.steps) if len(draft.steps) > 1 else (),
    )


def kernel_line(number: int, found: Iterable[Origin], lowering: Lowering) -> KernelLine:
    """One line of a kernel. Code that no node's own function wrote (the final store, the reduction)
    belongs to the realised node, or to all nodes of its scheduler node if torch names none."""
    names: dict[str, None] = {}
    for own, operation in found:
        name = own or lowering.realised.get(operation, "")
        if name:
            names[name] = None
        else:
            names.update(dict.fromkeys(lowering.operations.get(operation, ())))
    locations, inferred = lowering.lines(names)
    return KernelLine(
        line=number,
        nodes=tuple(names),
        locations=tuple(Location(file=place.file, line=place.line) for place in locations),
        inferred=inferred,
    )


def why_no_line(origins: tuple[str, ...], lowering: Lowering) -> str:
    """Why a kernel maps to no user line, as text."""
    if not origins:
        return "torch names no graph node that it comes from"
    known = [lowering.described[name] for name in origins if name in lowering.described]
    made_by = sorted({node.made_by for node in known if node.made_by})
    modules = sorted({node.module for node in known if node.module})
    shown = ", ".join(origins[:4]) + (" …" if len(origins) > 4 else "")
    by = f", made by {', '.join(made_by)}" if made_by else ""
    within = f", of module {', '.join(modules[:2])}" if modules else ""
    return f"torch records no user line for its nodes: {shown}{by}{within}"
