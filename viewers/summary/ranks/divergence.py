"""The first thing that ranks did differently, each rank's reason, and the collective that waits.

Ranks that run one program compile the same, in the same order, and start the same collective
operations. A difference in what they run comes before one in the caches, which only costs time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcw.compiler.trace.records import (
    CacheLookup,
    FrameStart,
    Graph,
    GraphBreak,
    Guards,
    Kernel,
    Location,
)
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary.phases import compile_seconds
from tcw.viewers.summary.place import Place, place_of
from tcw.viewers.summary.ranks.collectives import Started, started
from tcw.viewers.summary.ranks.conditions import asks_for_rank, calls_of, condition_of
from tcw.viewers.summary.ranks.events import Event, Kind, events_of, function_of
from tcw.viewers.summary.ranks.graph_sides import (
    constant_sides,
    graph_sides,
    modules_only_of,
)
from tcw.viewers.summary.recompiles import recompile_causes
from tcw.viewers.words import listed, plural, seconds_text


@dataclass(frozen=True)
class Side:
    """What some ranks did."""

    ranks: tuple[int, ...]
    words: str
    place: Place | None = None


@dataclass(frozen=True)
class Wait:
    """A collective operation in which ranks wait because of it."""

    ranks: tuple[int, ...]
    words: str
    """The operation."""
    because: str
    """What the other ranks do meanwhile."""
    place: Place | None = None


@dataclass(frozen=True)
class Divergence:
    """The first difference."""

    kind: Kind
    compile_id: str
    function: str
    sides: tuple[Side, ...]
    """The largest group of ranks first."""
    subject: int
    """Which of them to report first."""
    place: Place | None
    """The line that it is about."""
    condition: Place | None = None
    """The line that decides it, if the source has one."""
    why: str = ""
    """The cause in words, if it is not a condition."""
    fix: str = ""
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True)
class RankMember:
    """A rank, with its recording; several may share one that was read once."""

    rank: int
    recording: Recording
    complete: bool = True
    """False while it is recorded, or where the process was killed: that nothing follows then says
    nothing."""
    alike: int = 0
    """How many further ranks, whose logs were not decoded, do the same for as long as any does."""


def first_divergence(members: Sequence[RankMember]) -> Divergence | None:
    """None if the ranks did the same, as far as each was recorded."""
    recordings = {id(member.recording): member.recording for member in members}
    if len(recordings) < 2:
        return None
    known = {key: events_of(recording, len(members)) for key, recording in recordings.items()}
    apart = _cached_apart(known.values())
    for cached in (False, True):
        lists = {
            key: tuple(
                event
                for event in events
                if (event.kind == "cache") is cached
                and not (event.kind in _NOT_OF_HITS and event.compile_id in apart)
            )
            for key, events in known.items()
        }
        if (divergence := _first(members, lists)) is not None:
            return divergence
    return None


_NOT_OF_HITS: tuple[Kind, ...] = ("kernel", "collective")
"""Kinds that are not recorded of a graph that a cache has served."""


def _cached_apart(lists: Iterable[tuple[Event, ...]]) -> set[str]:
    """Compiles that a cache served on some ranks only."""
    verdicts: dict[str, set[Hashable]] = {}
    for events in lists:
        of = grouped((event.compile_id, event.key) for event in events if event.kind == "cache")
        for compile_id, keys in of.items():
            verdicts.setdefault(compile_id, set()).add(tuple(keys))
    return {compile_id for compile_id, verdict in verdicts.items() if len(verdict) > 1}


def _size(group: Sequence[RankMember]) -> tuple[int, int]:
    """For sorting groups of ranks: the largest first."""
    return -sum(1 + member.alike for member in group), group[0].rank


def _first(
    members: Sequence[RankMember], lists: Mapping[int, tuple[Event, ...]]
) -> Divergence | None:
    for at in range(max(map(len, lists.values()))):
        groups: dict[Hashable, list[RankMember]] = {}
        for member in members:
            events = lists[id(member.recording)]
            if at < len(events):
                groups.setdefault((events[at].kind, events[at].key), []).append(member)
            elif member.complete:
                groups.setdefault(None, []).append(member)
        if len(groups) > 1:
            ordered = sorted(groups.values(), key=_size)
            return _described(at, ordered, lists)
    return None


def _described(
    at: int, groups: Sequence[Sequence[RankMember]], lists: Mapping[int, tuple[Event, ...]]
) -> Divergence:
    """`groups`: ranks by what they did at this place of their lists, the largest first."""
    events = [_at(lists[id(group[0].recording)], at) for group in groups]
    kind = min((one.kind for one in events if one is not None), key=_TELLS.index)
    sides, conditions = [], []
    for number, (group, event) in enumerate(zip(groups, events, strict=True)):
        other = 1 if number == 0 else 0
        theirs = events[other]
        words, place = _words(kind, event, group[0].recording, theirs)
        sides.append(Side(tuple(rank_member.rank for rank_member in group), words, place))
        conditions.append(_condition(event, group[0].recording, place))
    # what the fewest ranks do is the news, and rather what a question about the rank decides
    subject = max(
        (number for number, one in enumerate(events) if one is not None and one.kind == kind),
        key=lambda number: (
            (found := conditions[number]) is not None and asks_for_rank(found.text),
            sides[number].place is not None,
            number,
        ),
    )
    event, member, side = events[subject], groups[subject][0], sides[subject]
    place = side.place or next((one.place for one in sides if one.place is not None), None)
    condition = conditions[subject]
    compile_id = event.compile_id if event is not None else ""
    return Divergence(
        kind=kind,
        compile_id=compile_id,
        function=function_of(member.recording, compile_id),
        sides=tuple(sides),
        subject=subject,
        place=place,
        condition=condition,
        why="" if condition is not None else _why(kind, subject, events, sides),
        fix=_fix(kind, events, condition),
        waits=_waits(kind, groups, events),
    )


_TELLS: tuple[Kind, ...] = (
    "break", "recompile", "graph", "constant", "collective", "frame", "guard", "kernel", "cache",
)  # fmt: skip
"""Where ranks differ in the kind of step: which of them is reported."""


def _at(events: Sequence[Event], at: int) -> Event | None:
    return events[at] if at < len(events) else None


_NOT: dict[Kind, str] = {
    "recompile": "does not recompile there",
    "break": "has no graph break there",
    "graph": "captures no graph there",
    "constant": "captures no graph there",
    "collective": "starts no collective there",
    "frame": "compiles nothing there",
    "guard": "has no guards there",
    "kernel": "has no such kernel",
    "cache": "asks no cache there",
}


def _words(
    kind: Kind, event: Event | None, recording: Recording, other: Event | None
) -> tuple[str, Place | None]:
    """What a side did, against another one."""
    if event is None or event.kind != kind:
        return _NOT[kind], None
    record = event.record
    if isinstance(record, Started):
        verb = "starts" if record.where == "eager" else "has"
        where = "" if record.where == "eager" else f" in {record.graph or record.compile_id}"
        return f"{verb} {record.words}{where}", record.place
    if event.kind == "recompile":
        return _recompiled(recording, event)
    if isinstance(record, FrameStart):
        return f"compiles {record.called}", place_of(recording, record.location)
    if isinstance(record, GraphBreak):
        return f"has a graph break: {record.type}", place_of(recording, record.location)
    if isinstance(record, Graph):
        against = other.record if other is not None else None
        if not isinstance(against, Graph):
            return f"captures a graph of {plural(record.ops, 'operation')}", None
        side = (graph_sides if event.kind == "graph" else constant_sides)(record, against)
        return side.words, place_of(recording, side.location)
    if isinstance(record, Guards):
        return _guarded(record, other, recording)
    if isinstance(record, Kernel):
        place = place_of(recording, next(iter(record.locations), None))
        return f"has the kernel {record.label or record.name} in {record.graph}", place
    if isinstance(record, CacheLookup):
        return _looked_up(record, other), _frame_place(recording, record.compile_id)
    return event.kind, None


def _recompiled(recording: Recording, event: Event) -> tuple[str, Place | None]:
    for cause in recompile_causes(recording):
        for frame in cause.frames:
            if frame.compile_id == event.compile_id:
                call = f" in call {frame.call}" if frame.call else ""
                return f"recompiles {frame.function}{call}: {frame.change.text}", frame.place
    return f"recompiles {event.compile_id}", None


def _guarded(record: Guards, other: Event | None, recording: Recording) -> tuple[str, Place | None]:
    against = other.record if other is not None else None
    others = against.guards if isinstance(against, Guards) else ()
    theirs = {(guard.name, guard.code) for guard in others}
    own = [guard for guard in record.guards if (guard.name, guard.code) not in theirs]
    if not own:
        return f"has {plural(record.count, 'guard')}", None
    first = next((guard for guard in own if guard.code), own[0])
    condition = first.code[0] if first.code else first.kind
    return f"guards {first.name or first.source}: {condition}", place_of(recording, first.location)


def _looked_up(record: CacheLookup, other: Event | None) -> str:
    verdict = f"has a {record.verdict} in the {record.cache} cache for "
    verdict += record.graph or record.compile_id
    reason = f": {record.missed.partition(';')[0]}" if record.missed else ""
    against = other.record if other is not None else None
    if isinstance(against, CacheLookup) and record.key and against.key:
        verdict += f", with {'the same' if record.key == against.key else 'another'} key"
    return verdict + reason


def _frame_place(recording: Recording, compile_id: str) -> Place | None:
    frames = (
        start.location for start in recording.all(FrameStart) if start.compile_id == compile_id
    )
    return place_of(recording, next(frames, None))


def _condition(event: Event | None, recording: Recording, place: Place | None) -> Place | None:
    """The condition of the program that decides whether this happens."""
    if event is None:
        return None
    record = event.record
    if isinstance(record, FrameStart):
        callers = calls_of(recording, record.function)
        return next((one for line in callers if (one := condition_of(recording, [line]))), None)
    if event.kind == "graph" or isinstance(record, (GraphBreak, Started)):
        stack = record.stack if isinstance(record, GraphBreak) and record.stack else ()
        line = [Location(file=place.file, line=place.line)] if place is not None else []
        return condition_of(recording, [*stack, *line])
    return None


def _why(kind: Kind, subject: int, events: Sequence[Event | None], sides: Sequence[Side]) -> str:
    """The cause, where no condition of the source decides it."""
    event = events[subject]
    if kind == "recompile" or (event is not None and _sized(event, events)):
        return "the ranks pass different sizes or values in this call"
    if kind == "cache":
        return "the ranks' caches hold different entries: one was warm, or the folders differ"
    if kind == "kernel":
        return "the same graph became different code: settings, caches or the hardware differ"
    if kind == "graph" and event is not None:
        against = next((one for at, one in enumerate(events) if at != subject and one), None)
        graphs = [one.record for one in (event, against) if one is not None]
        if len(graphs) == 2 and all(isinstance(graph, Graph) for graph in graphs):
            only = modules_only_of(graphs[0], graphs[1])  # type: ignore[arg-type]
            others = [side.ranks for at, side in enumerate(sides) if at != subject]
            lack = rank_words(tuple(rank for ranks in others for rank in ranks))
            if only:
                verb = "lacks" if sum(map(len, others)) == 1 else "lack"
                return f"its model has {listed(only)}, which {lack} {verb}"
    return ""


def _fix(kind: Kind, events: Sequence[Event | None], condition: Place | None) -> str:
    if condition is not None and kind in ("graph", "frame", "collective", "break"):
        return "Take the branch on all ranks, or keep it free of collectives and compiled code"
    if kind == "cache":
        return "Give all ranks of a host one TORCHINDUCTOR_CACHE_DIR, and warm it for all"
    sized = any(
        event is not None and (event.kind == "recompile" or _sized(event, events))
        for event in events
    )
    if sized:
        return "Pass the same sizes on every rank (drop_last=True, padding), or mark them dynamic"
    return ""


def _sized(event: Event, events: Sequence[Event | None]) -> bool:
    """Whether the graphs differ in sizes alone."""
    graphs = [one.record for one in events if one is not None and isinstance(one.record, Graph)]
    if event.kind != "graph" or len(graphs) < 2:
        return False
    shapes = [[(node.op, node.target) for node in graph.nodes] for graph in graphs]
    return all(shape == shapes[0] for shape in shapes)


def _waits(
    kind: Kind, groups: Sequence[Sequence[RankMember]], events: Sequence[Event | None]
) -> tuple[Wait, ...]:
    """From the difference on, the first operation that not all ranks start alike; else the next
    one, in which ranks wait for those that compile longer."""
    ranks = [tuple(member.rank for member in group) for group in groups]
    differing = next(event for event in events if event is not None and event.kind == kind)
    after = [
        _next(group[0].recording, event, kind, differing)
        for group, event in zip(groups, events, strict=True)
    ]
    # of a rank whose next operations are not known, none is said to be missing
    for at in range(min(map(len, after)) if kind == "recompile" else max(map(len, after))):
        here = [ops[at] if at < len(ops) else None for ops in after]
        keys = {one.key if one is not None else None for one in here}
        if len(keys) > 1:
            return tuple(
                _unmet(one, who, here, ranks)
                for one, who in zip(here, ranks, strict=True)
                if one is not None
            )
    if kind in ("recompile", "cache", "frame", "break"):
        return _delayed(groups, differing, after, ranks)
    return ()


def _next(recording: Recording, event: Event | None, kind: Kind, differing: Event) -> list[Started]:
    """What a rank starts from the difference on. The operations of a compiled graph are recorded
    once, where it was compiled. For a rank that did not recompile, those of its last entry for the
    frame count. For one that goes on with graphs from before, nothing is foretold."""
    found = [one for one in started(recording) if one.count <= 1]
    same = event is not None and event.kind == kind
    position = event.order[0] if event is not None else len(recording.records)
    if kind == "recompile":
        own = differing.compile_id if same else _entry_before(differing.compile_id, found)
        compiled = [one for one in found if one.compile_id == own]
        return compiled or [one for one in found if one.where == "eager" and one.order >= position]
    if not same and any(one.compile_id and one.order < position for one in found):
        return []
    return [one for one in found if one.order >= position]


def _entry_before(compile_id: str, found: Sequence[Started]) -> str:
    """The last compile of the same frame that starts anything."""
    frame = compile_id.partition("/")[0]
    of = [one.compile_id for one in found if one.compile_id.partition("/")[0] == frame]
    return of[-1] if of else ""


def _unmet(
    one: Started,
    who: tuple[int, ...],
    here: Sequence[Started | None],
    ranks: Sequence[tuple[int, ...]],
) -> Wait:
    def met(other: Started | None, single: bool) -> str:
        if other is None:
            return f"{'does' if single else 'do'} not start it"
        return f"{'is' if single else 'are'} in {other.words}"

    others = [
        f"{rank_words(them)} {met(other, len(them) == 1)}"
        for other, them in zip(here, ranks, strict=True)
        if them != who
    ]
    return Wait(who, one.words, "; ".join(others), one.place)


def _delayed(
    groups: Sequence[Sequence[RankMember]],
    differing: Event,
    after: Sequence[Sequence[Started]],
    ranks: Sequence[tuple[int, ...]],
) -> tuple[Wait, ...]:
    """All start the same; those that compile longer are waited for."""
    took = [compile_seconds(group[0].recording).get(differing.compile_id, 0.0) for group in groups]
    slow = max(range(len(took)), key=lambda at: took[at])
    quick = [at for at in range(len(took)) if at != slow and after[at]]
    longer = took[slow] - min(took)
    if not quick or longer < WORTH_SAYING:
        return ()
    who = tuple(sorted(rank for at in quick for rank in ranks[at]))
    first = after[quick[0]][0]
    words = f"{rank_words(ranks[slow])} compiled {seconds_text(longer)} longer"
    return (Wait(who, first.words, words, first.place),)


WORTH_SAYING = 0.05
"""Shortest wait that is reported, in seconds."""


def rank_words(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 0, 2, 3`."""
    names = [str(rank) for rank in ranks]
    return f"rank {names[0]}" if len(names) == 1 else f"ranks {listed(names, 6)}"
