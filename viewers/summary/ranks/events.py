"""What a process compiles and sends, as a sequence that ranks are compared by.

Compiles are in the order in which they began, and in each what torch does first stands first, so
that the order does not depend on threads. Times, addresses, process groups and numbers of devices
are left out: each rank has its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Literal

from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.records import (
    AnyRecord,
    CacheLookup,
    FrameStart,
    Graph,
    GraphBreak,
    Guards,
    Kernel,
    Node,
    Recompile,
    TensorMeta,
)
from tcw.viewers.recording import Recording
from tcw.viewers.summary.own_words import common
from tcw.viewers.summary.ranks.collectives import Started, started, without_group

Kind = Literal[
    "frame", "recompile", "break", "graph", "constant", "guard", "kernel", "collective", "cache"
]
_RANKED: tuple[Kind, ...] = (
    "recompile", "frame", "break", "graph", "constant", "guard", "collective", "kernel", "cache",
)  # fmt: skip
"""The order within a compile."""


@dataclass(frozen=True)
class Event:
    """One step."""

    kind: Kind
    key: Hashable
    """Equal for ranks that do the same."""
    compile_id: str
    order: tuple[float, int, int]
    record: AnyRecord | Started


def events_of(recording: Recording, world: int) -> tuple[Event, ...]:
    """All of them, in order. `world`: how many ranks there are; an operation outside graphs that
    only some of them take part in is left out."""
    began: dict[str, int] = {}
    for at, record in enumerate(recording.records):
        if isinstance(record, FrameStart):
            began.setdefault(record.compile_id, at)
    events: list[Event] = []
    guarded: set[str] = set()
    start: float
    for at, record in enumerate(recording.records):
        for kind, key, compile_id in _events(record, recording, guarded):
            start = began.get(compile_id, at)
            events.append(Event(kind, key, compile_id, (start, _RANKED.index(kind), at), record))
    for one in started(recording):
        if one.where == "eager" and 0 < one.ranks < world:
            continue
        start = one.order if one.where == "eager" else began.get(one.compile_id, one.order)
        order = (start, _RANKED.index("collective"), round(one.order * 1000))
        events.append(Event("collective", (one.key, _at(one)), one.compile_id, order, one))
    return tuple(sorted(events, key=lambda event: event.order))


def _at(one: Started) -> Hashable:
    """The line of an operation; a log has none."""
    return (one.place.file, one.place.line) if one.place is not None else None


def _events(
    record: AnyRecord, recording: Recording, guarded: set[str]
) -> Iterator[tuple[Kind, Hashable, str]]:
    if isinstance(record, FrameStart):
        if record.attempt == 0:
            place = (record.location.file, record.location.line)
            yield "frame", (record.function, place), record.compile_id
    elif isinstance(record, Recompile):
        first = record.failed[0] if record.failed else None
        words = common(first.guard) if first is not None else common(record.reason)
        seen = (first.expected, first.seen) if first is not None else ()
        yield "recompile", (words, seen, record.call), record.compile_id
    elif isinstance(record, GraphBreak):
        place = (record.location.file, record.location.line)
        yield "break", (record.gb or record.type, place), record.compile_id
    elif isinstance(record, Graph):
        if record.kind == "captured":
            yield "graph", tuple(node_key(node) for node in record.nodes), record.compile_id
            yield "constant", tuple(constants(node) for node in record.nodes), record.compile_id
    elif isinstance(record, Guards):
        if record.compile_id not in guarded:
            guarded.add(record.compile_id)
            yield "guard", frozenset(guard_keys(record)), record.compile_id
    elif isinstance(record, Kernel):
        if not record.predicted:
            code = common(recording.text(record.text)) if record.text else record.name
            compile_id = compile_of(record.graph)
            yield "kernel", (record.graph, record.language, hash(code)), compile_id
    elif isinstance(record, CacheLookup) and record.cache != "kernel build":
        yield "cache", (record.cache, record.graph, record.verdict), record.compile_id


def guard_keys(record: Guards) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for guard in record.guards:
        yield guard.kind, guard.name, tuple(common(text) for text in guard.code)


def node_key(node: Node) -> Hashable:
    """What a node does, with the sizes of its result."""
    return node.op, common(node.target), _value(node.value), tuple(map(_value, node.values))


def constants(node: Node) -> str:
    return common(without_group(node.args))


def _value(value: TensorMeta | None) -> Hashable:
    return None if value is None else (value.shape, value.dtype)


def function_of(recording: Recording, compile_id: str) -> str:
    """The name of the frame of a compile; "" if it is not recorded."""
    frames = (
        start.function for start in recording.all(FrameStart) if start.compile_id == compile_id
    )
    return next(frames, "")
