"""Which lines and which graph nodes of two recordings are the same, whatever they are called.

An edit moves the lines below it, and torch renames the nodes after a new one (`add_3` becomes
`add_4`). Neither is a change. Lines are aligned by the recorded sources, nodes by what they compute
and where, both in order (`difflib`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import NamedTuple

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Graph, Location, Node
from tcw.viewers.file_names import FileNames
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.lines import gaps, matches

_NUMBERED = re.compile(r"(primals_|tangents_|arg|bwd_rng_state_|fwd_rng_state_)\d+(_\d+)?")


GONE = "~gone"
"""Behind the name of a node that only the base has."""


class MatchedLine(NamedTuple):
    """A source line in terms of the run."""

    file: str
    line: int
    gone: bool = False
    """Whether only the base has it; `line` is then the base's."""


class Alignment:
    """The base in terms of the run: `line`, `node`."""

    def __init__(self, base: Recording, run: Recording) -> None:
        self.base = base
        self.run = run
        self._lines: dict[str, dict[int, int]] = {}
        self._nodes: dict[str, dict[str, str]] = {}
        self._gone: dict[str, set[str]] = {}
        """Nodes of a base's graph that the run's does not have."""

    @cached_property
    def _mains(self) -> tuple[str, str]:
        """The main files of both."""
        base, run = self.base.settings, self.run.settings
        return base.file if base else "", run.file if run else ""

    @cached_property
    def _roots(self) -> tuple[str, str]:
        """The folders below which both have the same tree: what is left of the main files' paths
        without their common end."""
        one, other = (list(PurePath(file).parts) for file in self._mains)
        if one[-1:] != other[-1:]:
            one, other = one[:-1], other[:-1]
        while one and other and one[-1] == other[-1]:
            one.pop()
            other.pop()
        return os.path.join("", *one), os.path.join("", *other)

    def file(self, name: str) -> str:
        """The run's name of a base's file: the main file is the main file, and what lies beside or
        above one lies there for the other."""
        mine, theirs = self._mains
        if name == mine:
            return theirs
        old, new = self._roots
        if old and PurePath(name).is_relative_to(old):
            moved = os.path.join(new, os.path.relpath(name, old))
            return moved if self.run.source(moved) else name
        return name

    def base_file(self, name: str) -> str:
        """The base's name of a run's file; "" if the base has no such file."""
        return next((file for file in self.base.files if self.file(file) == name), "")

    def lines(self, file: str) -> Mapping[int, int]:
        """Lines of a base's file -> lines of the run's, for those that both have."""
        if file not in self._lines:
            self._lines[file] = _lines(self.base.source(file), self.run.source(self.file(file)))
        return self._lines[file]

    def line(self, file: str, line: int) -> MatchedLine:
        """The base's line as the run has it."""
        if not self.base.source(file):
            return MatchedLine(self.file(file), line)
        found = self.lines(file).get(line)
        return MatchedLine(self.file(file), found or line, gone=found is None)

    def words(self, line: MatchedLine) -> str:
        """`block.py:24`, as the side that has the line calls it."""
        side = self.base if line.gone else self.run
        return FileNames.for_settings(side.settings).place(self.own_file(line), line.line)

    def own_file(self, line: MatchedLine) -> str:
        """The file of a line, as the side that has the line calls it."""
        return (self.base_file(line.file) if line.gone else "") or line.file

    def place(self, location: Location | None) -> MatchedLine | None:
        return None if location is None else self.line(location.file, location.line)

    def node(self, graph: str, name: str) -> str:
        """The run's name of a base's node; its own name, marked as `GONE`, if the run has no such
        node: what torch calls by that name there is another one. A name that is no node's (a loop
        that a lowering made) is kept."""
        found = self.nodes(graph)
        return found.get(name) or (name + GONE if name in self._gone[graph] else name)

    def nodes(self, graph: str) -> dict[str, str]:
        """The base's name of a node -> the run's, for every node that both have. `graph`: its id,
        with or without its last stage."""
        if graph not in self._nodes:
            names = (f"{graph}/lowered", graph)
            of = next((name for name in names if name in self.base.graphs), "")
            before, after = self.base.graphs.get(of), self.run.graphs.get(of)
            self._nodes[graph], self._gone[graph] = {}, set()
            if before is not None and after is not None:
                found = self._nodes[graph] = self.aligned(before, after)
                self._gone[graph] = {node.name for node in before.nodes} - found.keys()
        return self._nodes[graph]

    def same(self, graph: str) -> bool:
        """Whether the graph has the same nodes on both sides. `graph`: as of `nodes`."""
        return set(self._sizes(graph)) == {len(self.nodes(graph))}

    def grew(self, graph: str) -> bool:
        """Whether the run's graph has more nodes."""
        before, after = self._sizes(graph)
        return after > before

    def _sizes(self, graph: str) -> list[int]:
        """How many nodes the graph has in the base and in the run; 0 if it is not recorded."""
        names = (f"{graph}/lowered", graph)
        return [
            next((len(side.graphs[name].nodes) for name in names if name in side.graphs), 0)
            for side in (self.base, self.run)
        ]

    def aligned(self, base: Graph, run: Graph) -> dict[str, str]:
        """First the nodes that do the same at the same line of the same module, as one of several
        equal layers may be gone; then, between those, at the same line; then, between those, nodes
        that do the same at lines that were edited."""
        sides = (base.nodes, run.nodes)
        where = (
            [self.place(node.location) for node in base.nodes],
            [matched_line(node.location) for node in run.nodes],
        )
        what: list[list[Hashable]] = [[_what(node) for node in nodes] for nodes in sides]
        lines = [list(zip(*both, strict=True)) for both in zip(what, where, strict=True)]
        modules = [
            [(key, node.module) for key, node in zip(keys, nodes, strict=True)]
            for keys, nodes in zip(lines, sides, strict=True)
        ]
        found: list[tuple[int, int]] = []
        for keys in (modules, lines, what):
            for one, other in gaps(sorted(found), len(base.nodes), len(run.nodes)):
                rest = matches([keys[0][i] for i in one], [keys[1][j] for j in other])
                found += [(one[i], other[j]) for i, j in rest]
        return {base.nodes[i].name: run.nodes[j].name for i, j in found}

    def id(self, decision: str) -> str:
        """The run's id of a base's decision: `…/fuse/exp+add_3` -> `…/fuse/exp+add_4`; of a node
        that the run does not have, `…/fuse/exp+add_3~gone`."""
        head, slash, names = decision.rpartition("/")
        parts = head.split("/")
        for end in range(len(parts), 1, -1):
            graph = "/".join(parts[1:end])
            if base_graph(graph) in map(base_graph, self.base.graphs):
                renamed = (self.node(base_graph(graph), part) for part in names.split("+"))
                return head + slash + "+".join(renamed)
        return decision


def matched_line(location: Location | None) -> MatchedLine | None:
    """Of a location in the run."""
    return None if location is None else MatchedLine(location.file, location.line)


def _what(node: Node) -> Hashable:
    """Equal for nodes that do the same. AOTAutograd numbers its placeholders (`primals_3`), so
    there only their order counts."""
    numbered = node.op == "placeholder" and _NUMBERED.fullmatch(node.target)
    return node.op, "" if numbered else node.target


def _lines(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """Line of one text -> line of the other. Lines that were edited in place are the same ones."""
    found = matches(before, after)
    same = {i + 1: j + 1 for i, j in found}
    for one, other in gaps(found, len(before), len(after)):
        if len(one) == len(other):
            same |= {i + 1: j + 1 for i, j in zip(one, other, strict=True)}
    return same
