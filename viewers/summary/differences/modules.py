"""Changed operations module by module: a layer that is gone, an activation that is another one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.operations import OperationChange, OperationChangeKind
from tcw.viewers.words import listed, plural

_NAMED = 4
"""Maximum number of operations that are named of a module."""

_MANY = 6
"""Above this number of lines and operations that are new or gone in a module, they are one
change."""

_Key = tuple[str, str]
"""A graph and the path of a module in it."""


def by_module(
    changes: Sequence[OperationChange], alignment: Alignment
) -> tuple[OperationChange, ...]:
    """The changes, with one instead of those of a module that only one side runs, of which no
    operation is as before, or of which many are gone, or new."""
    base, run = _operations(alignment.base), _operations(alignment.run)
    gone = _count(changes, "gone")
    new = _count(changes, "new")
    found: dict[object, list[OperationChange]] = {}
    for number, one in enumerate(changes):
        key: object = number
        if one.kind in ("new", "gone"):
            for path in _paths(one.module):
                at = (one.graph, path)
                if gone[at] == base[at] and new[at] == run[at]:
                    key = at
                    break
        found.setdefault(key, []).append(one)
    merged = [
        _merged(key, group) if isinstance(key, tuple) else group[0] for key, group in found.items()
    ]
    return tuple(_many_together(merged))


def _many_together(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """Operations that went from a module, or came to it, in graph order; the largest are named."""
    groups: dict[object, list[OperationChange]] = {}
    for number, one in enumerate(changes):
        plain = one.kind in ("new", "gone") and one.module and "::" not in one.operation
        groups.setdefault((one.graph, one.module, one.kind) if plain else number, []).append(one)
    named: dict[object, str] = {}
    kinds = Counter((one.graph, one.module) for one, *_ in groups.values() if one.module)
    for group in groups.values():
        first, *_ = group
        places = {(one.line, one.operation) for one in group}
        if len(places) <= _MANY or kinds[first.graph, first.module] > 1:
            yield from group
            continue
        largest = sorted(group, key=lambda one: -one.bytes)
        names = listed(list(dict.fromkeys(one.operation for one in largest)), _NAMED)
        # of a recompile with symbolic sizes, the bytes are unknown
        names = named.setdefault((first.module, first.kind, len(group)), names)
        kind: OperationChangeKind = "many new" if first.kind == "new" else "many gone"
        yield replace(first, kind=kind, operation=first.module, after=names, alike=len(group))


def _paths(module: str) -> Iterator[str]:
    """`a`, `a.b` and `a.b.c` of `a.b.c`."""
    parts = module.split(".") if module else []
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _operations(recording: Recording) -> Counter[_Key]:
    """How many operations each module computes, with those inside it."""
    return Counter(
        (graph.id, path)
        for graph in recording.graphs.values()
        if graph.kind == "captured"
        for node in graph.nodes
        if node.op.startswith("call_")
        for path in _paths(node.module)
    )


def _count(changes: Sequence[OperationChange], kind: OperationChangeKind) -> Counter[_Key]:
    return Counter(
        (one.graph, path) for one in changes if one.kind == kind for path in _paths(one.module)
    )


def _merged(key: _Key, group: Sequence[OperationChange]) -> OperationChange:
    gone = [one.operation for one in group if one.kind == "gone"]
    new = [one.operation for one in group if one.kind == "new"]
    kind: OperationChangeKind = "module" if gone and new else "module new" if new else "module gone"
    words = [listed(list(dict.fromkeys(names)), _NAMED) for names in (gone, new)]
    if kind != "module" and len(group) > _NAMED:
        words = [plural(len(names), "operation") for names in (gone, new)]
    first = next((one for one in group if one.kind == "new"), group[0])
    return replace(first, kind=kind, operation=key[1], before=words[0], after=words[1])


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)")


def in_every_layer(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """The changes, with `*` for the number of a layer where several layers change alike."""
    paths: dict[object, set[str]] = {}
    for one in changes:
        paths.setdefault(_alike(one), set()).add(one.operation)
    for one in changes:
        several = one.kind.startswith(("module", "many")) and len(paths[_alike(one)]) > 1
        name = _NUMBER.sub("*", one.operation) if several else one.operation
        yield replace(one, operation=name)


def _alike(change: OperationChange) -> object:
    name = _NUMBER.sub("*", change.operation)
    return change.kind, name, change.line, change.before, change.after, change.alike


def inputs_together(changes: Sequence[OperationChange]) -> Iterator[OperationChange]:
    """The changes, with one for all inputs that change their dtype alike, and one for all
    parameters of another shape."""
    groups: dict[object, list[OperationChange]] = {}
    for number, one in enumerate(changes):
        key: object = number
        if one.kind == "input dtype":
            key = one.kind, one.before, one.after
        elif one.kind == "input shape" and one.weight:
            key = one.kind
        groups.setdefault(key, []).append(one)
    for group in groups.values():
        first, alike = group[0], len({one.operation for one in group})
        if alike > 1:
            yield replace(first, line=None, alike=alike)
        else:
            yield from group
