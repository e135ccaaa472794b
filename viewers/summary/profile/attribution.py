"""The measured time beside each source line, each node and each kernel line.

A kernel is timed as a whole. If several lines share it, each shows the whole time, marked as
shared: how it divides among them was not measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import CompiledStep
from tcw.viewers.summary.profile.index import Index


@dataclass(frozen=True)
class Cost:
    """Seconds of one call spent on, or shared with, a line, a node or a kernel line."""

    compiled: float = 0.0
    """Of all kernels and calls that compute it."""
    own: float = 0.0
    """Of those that compute nothing else of the same kind."""
    eager: float = 0.0
    """Of the eager operations of the line; 0 for nodes and kernel lines."""
    steps: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()

    @property
    def shared(self) -> bool:
        """Whether part of `compiled` is time of kernels that compute other lines too."""
        return self.own < self.compiled


def costs_by_ref(index: Index) -> Mapping[refs.Ref, Cost]:
    """Ref of a source line, an FX node, a kernel or a line of one -> its cost."""
    costs: dict[refs.Ref, Cost] = defaultdict(Cost)
    for step in index.steps.values():
        if step.time is None:
            continue
        for group in _computed(index, step):
            alone = len(group) == 1
            for ref in group:
                before = costs[ref]
                costs[ref] = replace(
                    before,
                    compiled=before.compiled + step.time.median,
                    own=before.own + (step.time.median if alone else 0.0),
                    steps=(*before.steps, step.id),
                )
    for operation in index.operations.values():
        if operation.time is None or operation.location is None:
            continue
        ref = refs.source(operation.location.file, operation.location.line)
        before = costs[ref]
        costs[ref] = replace(
            before,
            eager=before.eager + operation.time.median,
            operations=(*before.operations, operation.id),
        )
    return dict(costs)


def _computed(index: Index, step: CompiledStep) -> list[tuple[refs.Ref, ...]]:
    """What a step computes: source lines; the nodes of each graph; the kernel; its lines."""
    if not step.kernel:
        return []
    kernel = index.kernel_of(step)
    groups: dict[str, dict[refs.Ref, None]] = defaultdict(dict)
    groups["kernel"][refs.kernel(step.kernel)] = None
    for location in index.locations_of(step):
        groups["source"][refs.source(location.file, location.line)] = None
    for ref in index.provenance.counterparts(refs.kernel(step.kernel)):
        if refs.kind(ref) == "fx":
            groups[refs.split_node(ref)[0]][ref] = None
    for line in kernel.lines if kernel else ():
        if line.nodes or line.locations:
            groups["lines"][refs.kernel(step.kernel, line.line)] = None
    return [tuple(group) for group in groups.values()]
