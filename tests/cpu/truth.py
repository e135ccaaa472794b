"""What torch says of its own compiles (structured trace, counters), beside what we recorded."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.utils import counters

from tcw.compiler.capture import HOOKS
from tcw.compiler.graphs.lines import outside_torch, parse_stack_trace
from tcw.compiler.trace.records import (
    AnyRecord,
    FrameEnd,
    Graph,
    GraphBreak,
    Guards,
    Recompile,
    Warned,
)
from tests.cpu import recorded
from tests.cpu.structured_trace import StructuredTrace, structured_trace

Site = tuple[str, str, int]
"""(GB code, file, line)."""

_PLACE = re.compile(r"Graph break in user code at (?P<file>.+):(?P<line>\d+)\n")
_CODE = re.compile(r"gb(?P<code>\d{4})\.html")


@dataclass
class Story:
    """One run, as either side tells it. Compile ids are torch's `frame/compile`."""

    graphs: dict[str, int] = field(default_factory=dict)
    """Graphs handed to the backend -> ops in each."""
    breaks: list[Site] = field(default_factory=list)
    guards: dict[str, int] = field(default_factory=dict)
    """Guards of each compile."""
    recompiles: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    """By call: (compile id, reasons, one a line)."""
    tree_nodes: dict[str, int] = field(default_factory=dict)
    """Nodes of each C++ guard tree."""
    frames: int = 0
    """Frames that torch tried, whether or not they came to a graph."""

    def row(self) -> str:
        return (
            f"{len(self.graphs)} graphs, {sum(self.graphs.values())} ops, "
            f"{len(self.breaks)} breaks, {sum(self.guards.values())} guards in "
            f"{len(self.guards)} compiles, {sum(map(len, self.recompiles.values()))} recompiles"
        )


def compile_id(metadata: dict[str, Any]) -> str:
    return f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"


def told_by_torch(trace: StructuredTrace) -> Story:
    story = Story()
    output_graphs: list[str] = []
    for call, (metadata, payload) in zip(trace.calls, trace.events, strict=True):
        name = compile_id(metadata)
        artifact = metadata.get("artifact", {}).get("name")
        if "dynamo_output_graph" in metadata:
            output_graphs.append(name)
        elif artifact == "dynamo_graph_break_reason":
            story.breaks.append(_site(payload))
        elif artifact == "recompile_reasons":
            story.recompiles.setdefault(call, []).append((name, _reasons(payload)))
        elif "dynamo_cpp_guards_str" in metadata:
            story.tree_nodes[name] = 1 + payload.count("Manager: source=")
        elif "compilation_metrics" in metadata:
            metrics = metadata["compilation_metrics"]
            story.frames += 1
            if metrics.get("guard_count") is not None:
                story.guards[name] = metrics["guard_count"]
            if name in output_graphs:
                story.graphs[name] = metrics.get("graph_op_count")
    assert sorted(story.graphs) == sorted(set(output_graphs))
    story.breaks.sort()
    return story


def _site(payload: str) -> Site:
    place, code = _PLACE.search(payload), _CODE.search(payload)
    gb = f"GB{code['code']}" if code else ""
    if place is not None and outside_torch(place["file"]):
        return gb, place["file"], int(place["line"])
    # torch 2.11 may name a line of its own; the stack below it has the user's
    stack = parse_stack_trace(payload)
    return (gb, stack[-1].file, stack[-1].line) if stack else (gb, "", 0)


def _reasons(payload: Any) -> str:
    reasons = payload
    if isinstance(payload, str):
        try:
            reasons = json.loads(payload)
        except ValueError:
            reasons = payload
    return "\n".join(reasons) if isinstance(reasons, list) else str(reasons)


def told_by_us(records: list[AnyRecord]) -> Story:
    story = Story()
    for record in records:
        if isinstance(record, Graph) and record.kind == "captured":
            story.graphs[record.compile_id] = record.ops
        elif isinstance(record, GraphBreak):
            story.breaks.append((record.gb, record.location.file, record.location.line))
        elif isinstance(record, Guards):
            story.guards[record.compile_id] = len(record.guards)
            story.tree_nodes[record.compile_id] = record.tree_nodes
        elif isinstance(record, Recompile):
            story.recompiles.setdefault(record.call, []).append((record.compile_id, record.reason))
        elif isinstance(record, FrameEnd):
            story.frames += 1
    story.breaks.sort()
    return story


@dataclass
class Told:
    """One run, told by both sides."""

    name: str
    torch: Story
    ours: Story
    records: list[AnyRecord]
    counters: dict[str, Counter[str]]
    log: bytes
    """What TORCH_TRACE would have written of it."""

    @property
    def warnings(self) -> list[str]:
        return [record.message for record in self.records if isinstance(record, Warned)]


def run_recorded(name: str, calls: list[Callable[[], object]]) -> Told:
    """Make the calls with every capture hook and torch's own trace listening."""
    counters.clear()
    with recorded.record(HOOKS, file="") as recording, structured_trace() as trace:
        for number, call in enumerate(calls, 1):
            recording.recorder.call = trace.call = number
            call()
        counted = {name: Counter(counts) for name, counts in counters.items()}
    return Told(
        name=name,
        torch=told_by_torch(trace),
        ours=told_by_us(recording.records),
        records=recording.records,
        counters=counted,
        log="".join(trace.log).encode(),
    )


def run_alone(calls: list[Callable[[], object]]) -> Story:
    """The same without any hook of ours: torch's story of a run that nobody watches."""
    torch._dynamo.reset()
    with structured_trace() as trace:
        for number, call in enumerate(calls, 1):
            trace.call = number
            call()
    return told_by_torch(trace)
