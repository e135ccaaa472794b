"""Cold and warm: how two runs were served by the compile caches, and what a miss missed.

Lookups of one cache are paired by what their keys are made of (`trace.key_components`): the key
of the base with the most components in common with one that was not found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tcw.compiler.trace.key_components import (
    GRAPH,
    INPUT,
    Key,
    changed_components,
    component_words,
    key_of_texts,
    nearest_key,
    without_consequences,
)
from tcw.compiler.trace.records import CacheLookup, End, FrameEnd, Graph, Node
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine
from tcw.viewers.summary.own_words import are_ranks, common
from tcw.viewers.words import listed, plural, seconds_text

_SHOWN = 3
_ARGUMENT = re.compile(r"L_(.+)_")
UNKNOWN = "torch does not say what this key consists of"
GONE = "its key equals the other run's, but the entry is missing: another cache folder, or emptied"

OWN_DEVICE = "only its GPU's index differs, which keys include: each rank fills entries of its own"


_Why = tuple[str, MatchedLine | None]
"""What of a key changed, and the user's line behind it."""


@dataclass(frozen=True)
class CacheChange:
    """Lookups that fell otherwise in a run than in its base, or missed again, for one reason."""

    better: bool
    words: str
    line: MatchedLine | None = None
    """The user's line behind it."""
    because: str = ""
    """What of the key changed."""


def cache_changes(alignment: Alignment) -> tuple[CacheChange, ...]:
    """Misses by reason, then what is served now; none if the run compiled with empty caches of its
    own."""
    settings = alignment.run.settings
    if settings is None or not (settings.cached or settings.program):
        return ()
    return (*_misses(alignment), *_served(alignment.base, alignment.run))


def follows(base: Recording, run: Recording) -> bool:
    """Whether the run began when the base had ended."""
    end = base.last(End)
    if base.start is None or run.start is None or end is None:
        return False
    return bool(base.start.time) and run.start.time >= base.start.time + end.seconds


def _kind(lookup: CacheLookup) -> tuple[str, str]:
    """Keys of forward graphs do not explain a backward's miss."""
    return lookup.cache, lookup.graph.rpartition("/")[2]


def _misses(alignment: Alignment) -> Iterator[CacheChange]:
    base, run = alignment.base, alignment.run
    known = grouped((_kind(lookup), lookup) for lookup in base.all(CacheLookup))
    parts = _Components(base), _Components(run)
    missed: list[tuple[_Why, CacheLookup]] = []
    unexplained: list[CacheLookup] = []
    of_compile: dict[str, _Why] = {}
    for lookup in run.all(CacheLookup):
        others = known.get(_kind(lookup), [])
        why: _Why = (GONE, None)
        if lookup.verdict != "miss" or not others:
            continue
        if any(lookup.key and lookup.key == other.key for other in others):
            served = any(other.key == lookup.key and other.verdict == "hit" for other in others)
            if follows(run, base) or not (follows(base, run) or served):
                continue  # it ran first, or both began cold
        elif lookup.compile_id in of_compile:
            why = of_compile[lookup.compile_id]  # later keys are made of what the first was
        elif not lookup.components:
            unexplained.append(lookup)
            continue
        else:
            why = _reason(alignment, lookup, others, parts)
        of_compile.setdefault(lookup.compile_id, why)
        missed.append((why, lookup))
    for cache_lookup in unexplained:  # a miss of the same compile in another cache tells
        missed.append((of_compile.get(cache_lookup.compile_id, (UNKNOWN, None)), cache_lookup))
    for (because, line), lookups in grouped(missed).items():
        yield CacheChange(False, _missed_words(lookups, run), line, because)


def _missed_words(lookups: Sequence[CacheLookup], run: Recording) -> str:
    compiles = {lookup.compile_id: None for lookup in lookups if lookup.compile_id}
    seconds = sum(
        frame_end.seconds for frame_end in run.all(FrameEnd) if frame_end.compile_id in compiles
    )
    took = f"; compiling took {seconds_text(seconds)}" if seconds else ""
    where = f" in {listed(list(compiles)[:_SHOWN])}" if compiles else ""
    return f"{_counted(Counter(lookup.cache for lookup in lookups))} missed{where}{took}"


def _counted(caches: Mapping[str, int]) -> str:
    """`aot autograd, 2 × fx graph`."""
    return ", ".join(f"{n} × {name}" if n > 1 else name for name, n in caches.items() if n > 0)


def _served(base: Recording, run: Recording) -> Iterator[CacheChange]:
    """What is served in the run, and was not in the base."""

    def hits(recording: Recording) -> dict[str, list[CacheLookup]]:
        lookups = recording.all(CacheLookup)
        return grouped((lookup.cache, lookup) for lookup in lookups if lookup.verdict == "hit")

    before, after = hits(base), hits(run)
    more = {name: len(found) - len(before.get(name, [])) for name, found in after.items()}
    if gained := _counted(more):
        longest = max(
            sum(lookup.saved_seconds or 0.0 for lookup in found) for found in after.values()
        )
        saved = f"; {seconds_text(longest)} of compiling saved" if longest else ""
        yield CacheChange(True, f"served by caches: {gained}{saved}")


class _Components:
    """The keys of a recording, taken apart once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._known: dict[tuple[str, ...], Key] = {}

    def key(self, lookup: CacheLookup) -> Key:
        found = self._known.get(lookup.components)
        if found is None:
            texts = [self._recording.text(component) for component in lookup.components]
            found = self._known[lookup.components] = key_of_texts(
                lookup.graph or lookup.compile_id, texts
            )
        return found


def _reason(
    alignment: Alignment,
    lookup: CacheLookup,
    others: Sequence[CacheLookup],
    parts: tuple[_Components, _Components],
) -> _Why:
    """What of the key changed against the nearest of the base, and the user's line behind it."""
    key = parts[1].key(lookup)
    keys = [parts[0].key(cache_lookup) for cache_lookup in others if cache_lookup.components]
    other = nearest_key(key, keys)
    if other is None or not key.components:
        return UNKNOWN, None
    names = without_consequences(changed_components(other, key))
    if not names:
        return "no component of its key differs, as far as torch prints them", None
    if are_ranks(alignment.base, alignment.run):
        names = [one for one in names if not _same_but_for_device(one, other, key)]
        other, key = _without_own(other), _without_own(key)
        if not names:
            return OWN_DEVICE, None
    inputs = any(name.startswith(INPUT) for name in names)
    line = None
    words = []
    for name in names:
        if name == GRAPH:
            said, line = _code(alignment, lookup, inputs)
            words += [said] if said else []
        else:
            said = component_words(name, other, key, partial(_input, alignment.run, lookup))
            words.append(said + _variable(alignment, said))
    words = list(dict.fromkeys(words)) or ["the graph"]
    more = f"; {plural(len(words) - _SHOWN, 'further component')}" if len(words) > _SHOWN else ""
    return "; ".join(words[:_SHOWN]) + more, line


def _variable(alignment: Alignment, words: str) -> str:
    """The environment variable from which a run has a setting: ` (TORCHINDUCTOR_X=1 in this
    run)`."""
    setting = words.partition(": ")[0]
    sides = (alignment.run, "this run"), (alignment.base, "the other run")
    for recording, which in sides:
        machine = recording.environment
        variable = machine.variables.get(setting) if machine is not None else None
        if variable is not None:
            return f" ({variable} in {which})"
    return ""


def _same_but_for_device(name: str, old: Key, new: Key) -> bool:
    before, after = (side.components.get(name, ("", ""))[1] for side in (old, new))
    return before != after and common(before) == common(after)


def _without_own(key: Key) -> Key:
    return Key(
        key.graph, {name: (hash, common(text)) for name, (hash, text) in key.components.items()}
    )


def _input(run: Recording, lookup: CacheLookup, item: str) -> str:
    """An input by the user's name, where the graph of the key has one."""
    graph = run.graphs.get(lookup.graph) or run.graphs.get(lookup.compile_id)
    inputs = [node for node in graph.nodes if node.op == "placeholder"] if graph else []
    if item.isdecimal() and int(item) < len(inputs):
        name = inputs[int(item)].target
        argument = _ARGUMENT.fullmatch(name)  # Dynamo's name for a local
        return f"input {argument[1] if argument else name}"
    return f"input {item}"


def _code(
    alignment: Alignment, lookup: CacheLookup, other_inputs: bool
) -> tuple[str, MatchedLine | None]:
    """The first node of the graph that differs, and its line. No words if only sizes differ, which
    the inputs tell."""
    base, run = alignment.base, alignment.run
    pairs = [
        (base.graphs.get(name), run.graphs.get(name)) for name in (lookup.compile_id, lookup.graph)
    ]
    for before, after in pairs:
        if before is None or after is None:
            continue
        node = _first_other(before, after)
        if node is None:
            continue
        at = node.location
        line = MatchedLine(at.file, at.line) if at else None
        return f"the graph: {node.name} is {_call(node)}", line
    return ("" if other_inputs else "the graph"), None


def _first_other(before: Graph, after: Graph) -> Node | None:
    """The first node of `after` that `before` does not have at its place."""
    for old, new in zip(before.nodes, after.nodes, strict=False):
        if (old.op, old.target, old.args, old.inputs) != (new.op, new.target, new.args, new.inputs):
            return new
    count = len(before.nodes)
    return after.nodes[count] if len(after.nodes) > count else None


def _call(node: Node) -> str:
    if node.op == "placeholder":
        return "a new input"
    words = f"{node.target}({node.args})"
    return words if len(words) <= 80 else words[:79] + "…"
