"""Which lines and which graph nodes of two recordings are the same, whatever they are called.

An edit moves the lines below it, and torch renames the nodes after a new one (`add_3` becomes
`add_4`). Neither is a change. Lines are aligned by the recorded sources, nodes by what they compute
and where, both in order (`difflib`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from functools import cached_property

from compiler.trace.matching import base_graph
from compiler.trace.records import Graph, Location, Node
from viewers.recording import Recording

MOST_CELLS = 4_000_000
"""Nodes of both sides multiplied, beyond which nodes between a common start and end are not
aligned: `SequenceMatcher` takes quadratic time where much repeats."""

_NUMBERED = re.compile(r"(primals_|tangents_|arg|bwd_rng_state_|fwd_rng_state_)\d+(_\d+)?")

Line = tuple[str, int]
"""A file and a line in it."""


class Alignment:
    """The base in terms of the run: `line`, `node`."""

    def __init__(self, base: Recording, run: Recording) -> None:
        self.base = base
        self.run = run
        self._lines: dict[str, dict[int, int]] = {}
        self._nodes: dict[str, dict[str, str]] = {}

    @cached_property
    def _roots(self) -> tuple[str, str]:
        """The main files of both."""
        starts = (self.base.start, self.run.start)
        one, other = (start.settings.file if start else "" for start in starts)
        return one, other

    def file(self, name: str) -> str:
        """The run's name of a base's file: the main file is the main file, and what lies beside
        one lies beside the other."""
        mine, theirs = self._roots
        if name == mine:
            return theirs
        folder = os.path.dirname(mine)
        if folder and name.startswith(folder + os.sep):
            moved = os.path.join(os.path.dirname(theirs), os.path.relpath(name, folder))
            return moved if self.run.source(moved) else name
        return name

    def line(self, file: str, line: int) -> Line:
        """The base's line as the run has it. A line that is gone keeps its number, in a file that
        the run does not have."""
        if not self.base.source(file):
            return self.file(file), line
        if file not in self._lines:
            self._lines[file] = _lines(self.base.source(file), self.run.source(self.file(file)))
        found = self._lines[file].get(line)
        return (self.file(file), found) if found is not None else (f"{file}\n", line)

    def place(self, location: Location | None) -> Line | None:
        return None if location is None else self.line(location.file, location.line)

    def node(self, graph: str, name: str) -> str:
        """The run's name of a base's node; its own name if the run has no such node."""
        return self.nodes(graph).get(name, name)

    def nodes(self, graph: str) -> dict[str, str]:
        """The base's name of a node -> the run's, for every node that both have. `graph`: its id,
        with or without its last stage."""
        if graph not in self._nodes:
            of = next((one for one in (f"{graph}/lowered", graph) if one in self.base.graphs), "")
            other = self.run.graphs.get(of)
            self._nodes[graph] = (
                self._aligned(self.base.graphs[of], other) if other is not None else {}
            )
        return self._nodes[graph]

    def _aligned(self, base: Graph, run: Graph) -> dict[str, str]:
        """First the nodes that do the same at the same line, then, between those, the nodes that do
        the same at lines that were edited."""
        what = [_what(node) for node in base.nodes], [_what(node) for node in run.nodes]
        where = (
            [self.place(node.location) for node in base.nodes],
            [(at.file, at.line) if (at := node.location) else None for node in run.nodes],
        )
        sure = common(
            list(zip(what[0], where[0], strict=True)), list(zip(what[1], where[1], strict=True))
        )
        found = list(sure)
        ends = (len(base.nodes), len(run.nodes))
        for (i1, j1), (i2, j2) in zip([(-1, -1), *sure], [*sure, ends], strict=True):
            found += [
                (i1 + 1 + i, j1 + 1 + j)
                for i, j in common(what[0][i1 + 1 : i2], what[1][j1 + 1 : j2])
            ]
        return {base.nodes[i].name: run.nodes[j].name for i, j in found}

    def id(self, decision: str) -> str:
        """The run's id of a base's decision: `…/fuse/exp+add_3` -> `…/fuse/exp+add_4`."""
        head, slash, names = decision.rpartition("/")
        parts = head.split("/")
        for end in range(len(parts), 1, -1):
            graph = "/".join(parts[1:end])
            if base_graph(graph) in _graphs(self.base):
                nodes = self.nodes(base_graph(graph))
                return head + slash + "+".join(nodes.get(one, one) for one in names.split("+"))
        return decision


def _what(node: Node) -> Hashable:
    """Equal for nodes that do the same. AOTAutograd numbers its placeholders (`primals_3`), so
    there only their order counts."""
    numbered = node.op == "placeholder" and _NUMBERED.fullmatch(node.target)
    return node.op, "" if numbered else node.target


def _graphs(recording: Recording) -> set[str]:
    return {base_graph(graph) for graph in recording.graphs}


def _lines(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """Line of one text -> line of the other. Lines that were edited in place are the same ones."""
    found: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and i2 - i1 == j2 - j1):
            found |= dict(zip(range(i1 + 1, i2 + 1), range(j1 + 1, j2 + 1), strict=True))
    return found


def common(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Positions of the elements that both have, in order: a common start and end, and between them
    what `SequenceMatcher` finds."""
    least = min(len(first), len(second))
    start = next((at for at in range(least) if first[at] != second[at]), least)
    end = next(
        (at for at in range(least - start) if first[-1 - at] != second[-1 - at]), least - start
    )
    found = [(at, at) for at in range(start)]
    one, other = first[start : len(first) - end], second[start : len(second) - end]
    if len(one) * len(other) <= MOST_CELLS:
        for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
            found += [(start + block.a + k, start + block.b + k) for k in range(block.size)]
    found += [(len(first) - end + at, len(second) - end + at) for at in range(end)]
    return found
