"""Provenance: which things of a trace come from which, through all stages.

A link leads from a thing, by its ref (`refs.py`), to what it was made from: from a kernel line to
the FX nodes it computes, from a lowered node to the nodes before the passes, from a captured node
to its source line. It is exact if torch recorded it, inferred if the line was derived from
neighbours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, Graph, Kernel, Node, SchedulerNode
from tcw.compiler.trace.refs import Ref

Quality = Literal["exact", "inferred"]

_Links = dict[Ref, dict[Ref, bool]]


class Provenance:
    """The links of one trace. Feed it records in any order; links are built on the first query."""

    def __init__(self, records: Iterable[AnyRecord] = ()) -> None:
        self._waiting: list[AnyRecord] = []
        self._made_from: _Links = {}
        self._made_into: _Links = {}
        self.feed(records)

    def feed(self, records: Iterable[AnyRecord]) -> None:
        """Add the records that link: graphs, scheduler nodes and kernels, in any order."""
        kinds = (Graph, SchedulerNode, Kernel)
        self._waiting.extend(record for record in records if isinstance(record, kinds))

    def counterparts(self, ref: Ref) -> dict[Ref, Quality]:
        """Everything that `ref` was made from or that was made from it, without `ref` itself.

        `exact` if a path without an inferred link leads there. A ref that no record mentions has no
        counterparts.
        """
        self._draw()
        found = _closure(ref, self._made_from)
        found.update(_closure(ref, self._made_into))
        found.pop(ref, None)
        return {other: "exact" if exact else "inferred" for other, exact in found.items()}

    def _draw(self) -> None:
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            if isinstance(record, Graph):
                for node in record.nodes:
                    self._draw_node(record, node)
            elif isinstance(record, SchedulerNode):
                operation = refs.operation(record.graph, record.name)
                for origin in record.origins:
                    self._link(operation, refs.node(record.graph, origin), True)
            elif isinstance(record, Kernel):
                self._draw_kernel(record)

    def _draw_node(self, graph: Graph, node: Node) -> None:
        name = refs.node(graph.id, node.name)
        if node.location is not None:
            place = refs.source(node.location.file, node.location.line)
            self._link(name, place, not node.inferred)
        if graph.parent:
            for origin in node.origins:
                self._link(name, refs.node(graph.parent, origin), not node.inferred)

    def _draw_kernel(self, record: Kernel) -> None:
        name = refs.kernel(record.id)
        for operation in record.nodes:
            self._link(name, refs.operation(record.graph, operation), True)
        for origin in record.origins:
            self._link(name, refs.node(record.graph, origin), True)
        if not record.origins and not record.nodes:
            for place in record.locations:
                self._link(name, refs.source(place.file, place.line), True)
        for line in record.lines:
            here = refs.kernel(record.id, line.line)
            for origin in line.nodes:
                self._link(here, refs.node(record.graph, origin), not line.inferred)
            for place in line.locations:
                self._link(here, refs.source(place.file, place.line), not line.inferred)

    def _link(self, thing: Ref, origin: Ref, exact: bool) -> None:
        before = self._made_from.setdefault(thing, {})
        exact = exact or before.get(origin, False)
        before[origin] = exact
        self._made_into.setdefault(origin, {})[thing] = exact


def _closure(ref: Ref, links: _Links) -> dict[Ref, bool]:
    """Everything reachable from `ref` over `links`, and whether an exact path leads there."""
    found: dict[Ref, bool] = {}
    for exact_only in (True, False):
        waiting = deque([ref])
        seen = {ref}
        while waiting:
            for other, exact in links.get(waiting.popleft(), {}).items():
                if other in seen or (exact_only and not exact):
                    continue
                seen.add(other)
                waiting.append(other)
                found.setdefault(other, exact_only)
    return found
