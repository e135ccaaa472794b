"""What changed in the model: operations that differ, one change for what was one edit.

Known whatever torch makes of it: graphs may be cut elsewhere, or one side may have failed. Then
all graphs of a side are compared as one, and what one side may run eagerly is not called gone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tcw.compiler.trace.records import Graph
from tcw.viewers.collected import grouped
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine, matched_line
from tcw.viewers.summary.differences.causes import edits_of
from tcw.viewers.summary.differences.fact_changes import FactChanges
from tcw.viewers.summary.differences.operation_changes import (
    OperationChange,
    OperationChangeKind,
    called,
    captured,
    computes,
    operation_changes,
)
from tcw.viewers.words import listed, plural


def model_changes(
    alignment: Alignment, facts: FactChanges, cut: bool
) -> tuple[OperationChange, ...]:
    """First those that say more than that a line was written or deleted. `cut`: whether graphs are
    cut elsewhere, or one side failed."""
    changes = operation_changes(alignment, whole=cut)
    if cut:
        changes = tuple(_certain(changes, alignment, facts))
    graphs = [captured(side, cut) for side in (alignment.base, alignment.run)]
    merged = tuple(_in_every_layer(_by_module(changes, *graphs)))
    told = _once_a_frame(_inputs_together(merged))
    return tuple(
        sorted(told, key=lambda change: (not change.telling, change.kind.startswith("many")))
    )


@dataclass(frozen=True)
class _Known:
    """What is known of the side that lacks an operation."""

    complete: bool
    """Whether it got as far as the other."""
    everything: bool
    """Whether all that it ran is in its graphs."""
    captured: frozenset[tuple[str, MatchedLine | None]]
    """Its operations and their lines."""


def _certain(
    changes: Sequence[OperationChange], alignment: Alignment, facts: FactChanges
) -> Iterator[OperationChange]:
    """Without operations that the other side may run eagerly, in another graph, or had not reached
    when it failed. One is certainly new or gone if the other side captured everything, if the line
    was edited, or if another operation took its place."""
    edits = edits_of(alignment)
    others = {"new": _known(alignment, facts, 0), "gone": _known(alignment, facts, 1)}
    places = {
        kind: {(one.line, one.module) for one in changes if one.kind == kind} for kind in others
    }
    replaced = places["new"] & places["gone"]
    for change in changes:
        other, line = others.get(change.kind), change.line
        if other is not None:
            edited = line is not None and any(edit.covers(line) for edit in edits)
            certain = other.everything or (edited and other.complete)
            certain |= (line, change.module) in replaced
            if not certain or (change.operation, line) in other.captured:
                continue
        yield change


def _known(alignment: Alignment, facts: FactChanges, side: Literal[0, 1]) -> _Known:
    recording = (alignment.base, alignment.run)[side]
    place = (alignment.place, matched_line)[side]
    complete = facts.complete[side]
    cut = [one for one in facts.counts if one.fact.group in ("break", "eager")]
    return _Known(
        complete,
        complete and not any((one.before, one.after)[side] for one in cut),
        frozenset(
            (called(node), place(node.location))
            for graph in captured(recording, whole=True).values()
            for node in graph.nodes
        ),
    )


def _once_a_frame(changes: Iterable[OperationChange]) -> Iterator[OperationChange]:
    """Without what an earlier compile of the frame has told: a recompile captures it again."""
    told: Counter[Hashable] = Counter()
    counts: Counter[Hashable] = Counter()
    for change in changes:
        frame, _, _ = change.graph.rpartition("/")
        key = (frame, replace(change, graph="", bytes=0))
        counts[change.graph, key] += 1
        if counts[change.graph, key] > told[key]:
            told[key] += 1
            yield change


_NAMED = 4
"""Maximum number of operations that are named of a module."""

_MANY = 6
"""Above this number of lines and operations that are new or gone in a module, they are one
change."""

_Key = tuple[str, str]
"""A graph and the path of a module in it."""


def _by_module(
    changes: Sequence[OperationChange], base: Mapping[str, Graph], run: Mapping[str, Graph]
) -> tuple[OperationChange, ...]:
    """The changes, with one instead of those of a module that only one side runs, of which no
    operation is as before, or of which many are gone, or new. `base`, `run`: captured graphs."""
    before, after = _operations(base), _operations(run)
    gone = _count(changes, "gone")
    new = _count(changes, "new")
    found: dict[object, list[OperationChange]] = {}
    for number, change in enumerate(changes):
        key: object = number
        if change.kind in ("new", "gone"):
            for path in _paths(change.module):
                at = (change.graph, path)
                if gone[at] == before[at] and new[at] == after[at]:
                    key = at
                    break
        found.setdefault(key, []).append(change)
    merged = [
        _merged(key, group) if isinstance(key, tuple) else group[0] for key, group in found.items()
    ]
    return tuple(_many_together(merged))


def _many_together(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """Operations that went from a module, or came to it, in graph order; the largest are named."""

    def key(change: OperationChange) -> object:
        plain = change.kind in ("new", "gone") and change.module and "::" not in change.operation
        return (change.graph, change.module, change.kind) if plain else None

    groups = grouped((key(change) or number, change) for number, change in enumerate(changes))
    named: dict[object, str] = {}
    kinds = Counter(
        (change.graph, change.module) for change, *_ in groups.values() if change.module
    )
    for group in groups.values():
        first, *_ = group
        places = {(change.line, change.operation) for change in group}
        if len(places) <= _MANY or kinds[first.graph, first.module] > 1:
            yield from group
            continue
        largest = sorted(group, key=lambda change: -change.bytes)
        names = listed(list(dict.fromkeys(change.operation for change in largest)), _NAMED)
        # of a recompile with symbolic sizes, the bytes are unknown
        names = named.setdefault((first.module, first.kind, len(group)), names)
        kind: OperationChangeKind = "many new" if first.kind == "new" else "many gone"
        yield replace(first, kind=kind, operation=first.module, after=names, alike=len(group))


def _paths(module: str) -> Iterator[str]:
    """`a`, `a.b` and `a.b.c` of `a.b.c`."""
    parts = module.split(".") if module else []
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _operations(graphs: Mapping[str, Graph]) -> Counter[_Key]:
    """How many operations each module computes, with those inside it."""
    return Counter(
        (id, path)
        for id, graph in graphs.items()
        for node in graph.nodes
        if computes(node)
        for path in _paths(node.module)
    )


def _count(changes: Sequence[OperationChange], kind: OperationChangeKind) -> Counter[_Key]:
    return Counter(
        (change.graph, path)
        for change in changes
        if change.kind == kind
        for path in _paths(change.module)
    )


def _merged(key: _Key, group: Sequence[OperationChange]) -> OperationChange:
    gone = [change.operation for change in group if change.kind == "gone"]
    new = [change.operation for change in group if change.kind == "new"]
    kind: OperationChangeKind = "module" if gone and new else "module new" if new else "module gone"
    words = [listed(list(dict.fromkeys(names)), _NAMED) for names in (gone, new)]
    if kind != "module" and len(group) > _NAMED:
        words = [plural(len(names), "operation") for names in (gone, new)]
    first = next((change for change in group if change.kind == "new"), group[0])
    return replace(first, kind=kind, operation=key[1], before=words[0], after=words[1])


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)")


def _in_every_layer(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """The changes, with `*` for the number of a layer where several layers change alike."""
    paths: dict[object, set[str]] = {}
    for change in changes:
        paths.setdefault(_alike(change), set()).add(change.operation)
    for operation_change in changes:
        several = (
            operation_change.kind.startswith(("module", "many"))
            and len(paths[_alike(operation_change)]) > 1
        )
        name = (
            _NUMBER.sub("*", operation_change.operation) if several else operation_change.operation
        )
        yield replace(operation_change, operation=name)


def _alike(change: OperationChange) -> object:
    name = _NUMBER.sub("*", change.operation)
    return change.kind, name, change.line, change.before, change.after, change.alike


def _inputs_together(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """The changes, with one for all inputs that change their dtype alike, and one for all
    parameters of another shape."""

    def key(change: OperationChange) -> object:
        if change.kind == "input dtype":
            return change.kind, change.before, change.after
        return change.kind if change.kind == "input shape" and change.weight else None

    groups = grouped((key(change) or number, change) for number, change in enumerate(changes))
    for group in groups.values():
        first, alike = group[0], len({change.operation for change in group})
        if alike > 1:
            yield replace(first, line=None, alike=alike)
        else:
            yield from group
