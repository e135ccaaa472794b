"""Which breakpoint a record or decision meets. Every field of a breakpoint that is set must match.

A line or an operation is looked up in the nodes of the record's graph, once per graph and
breakpoint, so a recording without such breakpoints pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.protocol.decision import APART, FUSE
from tcw.compiler.trace.records import (
    Graph,
    Kernel,
    Location,
    Lowered,
    Record,
    SchedulerNode,
    Stage,
    Step,
)

if TYPE_CHECKING:
    from tcw.compiler.protocol.decision import Decision

_LATER: tuple[type[Record], ...] = (Graph, Lowered, SchedulerNode, Kernel)
"""Records of things derived from graph nodes."""

DECISIONS = ("decision", "rejection")


class Matcher:
    """Decides which breakpoints are met, and remembers it so that each is met only once."""

    def __init__(self) -> None:
        self._graphs: dict[str, Graph] = {}
        self._origins: dict[tuple[str, str], tuple[str, ...]] = {}
        """(graph, scheduler node) -> nodes of the lowered graph."""
        self._nodes: dict[tuple[Breakpoint, str], frozenset[str]] = {}
        self._met: set[tuple[Breakpoint, str, str]] = set()
        """(line breakpoint, graph or compile, stage)."""

    def learn(self, record: Record) -> None:
        """Keep what later records and decisions refer to."""
        if isinstance(record, Graph):
            self._graphs[record.id] = record
            for key in [key for key in self._nodes if key[1] == record.id]:
                del self._nodes[key]
        elif isinstance(record, SchedulerNode):
            self._origins[record.graph, record.name] = record.origins

    def line(self, wanted: Breakpoint, record: Record, stage: Stage, entered: bool) -> bool:
        """Whether a record is the first from a user line: each time Dynamo enters the line, and
        once per graph and stage for later records."""
        if isinstance(record, Step):
            if not (entered and _is_at(wanted, record.location)):
                return False
            self._met.add((wanted, record.compile_id, "capture"))
            return True
        if not isinstance(record, _LATER):
            return False
        where = record.id if isinstance(record, Graph) else str(getattr(record, "graph", ""))
        if isinstance(record, Kernel):
            found = any(_is_at(wanted, location) for location in record.locations)
        else:
            found = self._about(wanted, record)
        return found and self._first(wanted, where, stage)

    def line_of_decision(self, wanted: Breakpoint, decision: Decision, stage: Stage) -> bool:
        return self._decides(wanted, decision) and self._first(wanted, decision.graph, stage)

    def operation(self, wanted: Breakpoint, record: Record, stage: Stage) -> bool:
        """Whether a record creates, or concerns, a node with this name or target."""
        if isinstance(record, Step):
            return any(wanted.op in name for name in record.nodes)
        if not isinstance(record, _LATER) or isinstance(record, SchedulerNode):
            return False
        where = record.id if isinstance(record, Graph) else str(getattr(record, "graph", ""))
        return self._about(wanted, record) and self._first(wanted, where, stage)

    def decision(self, wanted: Breakpoint, decision: Decision) -> bool:
        """Whether a decision meets all conditions of a decision breakpoint."""
        if wanted.id and wanted.id != decision.id:
            return False
        if wanted.kind == "rejection":
            if decision.default != APART or (wanted.decision or FUSE) != decision.kind:
                return False
        elif wanted.decision and wanted.decision != decision.kind:
            return False
        if wanted.rule and wanted.rule != decision.rule:
            return False
        if not _within(wanted, decision):
            return False
        if wanted.op or wanted.line:
            return self._decides(wanted, decision)
        return True

    def _first(self, wanted: Breakpoint, where: str, stage: str) -> bool:
        key = (wanted, where, stage)
        if key in self._met:
            return False
        self._met.add(key)
        return True

    def _about(self, wanted: Breakpoint, record: Record) -> bool:
        if isinstance(record, Graph):
            return bool(self._matching(wanted, record.id))
        if isinstance(record, Lowered):
            return self._any(wanted, record.graph, (record.node,))
        if isinstance(record, SchedulerNode | Kernel):
            return self._any(wanted, record.graph, record.origins)
        return False

    def _decides(self, wanted: Breakpoint, decision: Decision) -> bool:
        names = self._nodes_of(decision)
        if wanted.op and not wanted.line and any(wanted.op in name for name in names):
            return True
        return self._any(wanted, decision.graph, names)

    def location(self, decision: Decision) -> Location | None:
        """The user's line of the first of a decision's nodes that has one."""
        graph = self._graph(decision.graph)
        names = set(self._nodes_of(decision))
        for node in graph.nodes if graph is not None else ():
            if node.name in names and node.location is not None:
                return node.location
        return None

    def _nodes_of(self, decision: Decision) -> list[str]:
        """The nodes that a decision concerns: the names in its id, and the nodes they were made
        from."""
        found = [*decision.names]
        for name in decision.names:
            found += self._origins.get((decision.graph, name), ())
        return found

    def _graph(self, id: str) -> Graph | None:
        """The graph whose nodes later stages refer to: the lowered graph if there is one."""
        return self._graphs.get(f"{id}/lowered") or self._graphs.get(id)

    def _any(self, wanted: Breakpoint, graph: str, names: Iterable[str]) -> bool:
        known = self._graph(graph)
        found = self._matching(wanted, known.id) if known is not None else frozenset()
        return bool(found) and any(name in found for name in names)

    def _matching(self, wanted: Breakpoint, graph: str) -> frozenset[str]:
        """Names of a graph's nodes that are from the line and match the operation, if given."""
        key = (wanted, graph)
        found = self._nodes.get(key)
        if found is None:
            known = self._graphs.get(graph)
            found = self._nodes[key] = frozenset(
                node.name
                for node in (known.nodes if known is not None else ())
                if (not wanted.op or wanted.op in node.name or wanted.op in node.target)
                and (not wanted.line or _is_at(wanted, node.location))
            )
        return found


def _is_at(wanted: Breakpoint, location: Location | None) -> bool:
    return location is not None and location.line == wanted.line and in_file(wanted, location.file)


def in_file(wanted: Breakpoint, file: str) -> bool:
    """Whether the breakpoint's file is this one: a full path, or a suffix of one."""
    return not wanted.file or file == wanted.file or file.endswith(f"/{wanted.file}")


def at_place(wanted: Breakpoint, location: Location | None) -> bool:
    """Whether a break or recompile is at the breakpoint's line, if it has one."""
    return not wanted.line or _is_at(wanted, location)


def _within(wanted: Breakpoint, decision: Decision) -> bool:
    """Whether the named number exists and is within its bounds; without a name, whether any is."""
    if not wanted.number_name and wanted.at_least is None and wanted.at_most is None:
        return True
    return any(
        (wanted.at_least is None or value >= wanted.at_least)
        and (wanted.at_most is None or value <= wanted.at_most)
        for value in _values(wanted.number_name, decision.numbers)
    )


def _values(name: str, numbers: Mapping[str, float]) -> Sequence[float]:
    """The number of this name; else all whose name contains it: `bytes` matches `saved_bytes`."""
    if name in numbers:
        return (numbers[name],)
    return tuple(value for known, value in numbers.items() if name in known)
