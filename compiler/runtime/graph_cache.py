"""Compiled graphs, cached by what they are compiled from: from a graph's key to its callable.

Only a miss runs lowering and the rest; it reports what has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from tcw.compiler.cache_folder import read_own
from tcw.compiler.runtime.artifact import FORMAT, Artifact, Unavailable
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.compiled import Boxed, Compiled, load
from tcw.compiler.runtime.operations import UnknownOperation
from tcw.compiler.runtime.store import MOST_BYTES, FileStore, digest

NEAREST_AMONG = 64
"""Number of recently used entries that a miss is compared with."""

SHOWN = 120
"""Maximum length of a component's text that is stored for display."""


class Component(msgspec.Struct, frozen=True):
    """One part of a key."""

    digest: str
    text: str = ""
    """The part itself if it is short; "" if only its digest shows a change."""


_ARTIFACT = msgspec.json.Decoder(Artifact)
_COMPONENTS = msgspec.json.Decoder(dict[str, Component])


class ChangedComponent(msgspec.Struct, frozen=True):
    """A component that differs from the nearest entry's."""

    name: str
    before: str
    """Its text, or a digest if the text is long; "" if the nearest entry lacks it."""
    now: str


@dataclass(frozen=True, slots=True)
class GraphKey:
    """Named parts, in order. The `own` parts identify the graph, the others its environment."""

    components: dict[str, Component]
    own: frozenset[str]

    @property
    def digest(self) -> str:
        rows = [[name, part.digest] for name, part in self.components.items()]
        return digest(msgspec.json.encode([FORMAT, rows]))


@dataclass(frozen=True, slots=True)
class Hit:
    """The graph is in the cache."""

    artifact: Artifact


@dataclass(frozen=True, slots=True)
class Miss:
    """The graph is not in the cache, and why."""

    reason: str
    """`first`: no entry of a similar graph; `changed`; `damaged`: an unreadable entry;
    `unexplained`: no explanation was requested."""
    nearest: str = ""
    """Key of the entry that has the most components in common."""
    changed: tuple[ChangedComponent, ...] = ()


def key_of(own: Mapping[str, str], surroundings: Mapping[str, str]) -> GraphKey:
    """A key from named texts: the graph's `own`, and `surroundings` (versions, flags, settings)."""
    parts = {name: _component(text) for name, text in (*own.items(), *surroundings.items())}
    return GraphKey(parts, frozenset(own))


def _component(text: str) -> Component:
    return Component(digest(text.encode())[:32], text if len(text) <= SHOWN else "")


def look_up(key: GraphKey, store: FileStore, explain: bool = True) -> Hit | Miss:
    """The artifact of a key. A miss reports what changed from the nearest of the recent entries.

    Without `explain` a miss is `unexplained`, and the recent entries are not read.
    """
    name = f"{key.digest}.json"
    there = store.path("graphs", name).exists()
    artifact = store.read_record("graphs", name, _ARTIFACT)
    if artifact is not None:
        return Hit(artifact)
    if there:
        return Miss("damaged")
    return _miss(key, store) if explain else Miss("unexplained")


def keep(key: GraphKey, artifact: Artifact, store: FileStore) -> None:
    """Store an artifact, and the parts of its key next to it. Raises OSError."""
    store.write_sealed("graphs", f"{key.digest}.json", msgspec.json.encode(artifact))
    store.write("keys", f"{key.digest}.json", msgspec.json.encode(key.components))


def _miss(key: GraphKey, store: FileStore) -> Miss:
    best: tuple[tuple[int, int], str, dict[str, Component]] | None = None
    for name in store.newest("keys", NEAREST_AMONG):
        parts = _parts(name, store)
        equal = {n for n, part in key.components.items() if parts.get(n) == part}
        score = (len(equal & key.own), len(equal))
        if score[0] and (best is None or score > best[0]):
            best = score, name, parts
    if best is None:
        return Miss("first")
    names = dict.fromkeys((*key.components, *best[2]))
    changed = tuple(
        ChangedComponent(name, _shown(best[2].get(name)), _shown(key.components.get(name)))
        for name in names
        if best[2].get(name) != key.components.get(name)
    )
    return Miss("changed", best[1].removesuffix(".json"), changed)


def _parts(name: str, store: FileStore) -> dict[str, Component]:
    try:
        return _COMPONENTS.decode(read_own(store.path("keys", name), MOST_BYTES))
    except (OSError, msgspec.MsgspecError):
        return {}


def _shown(part: Component | None) -> str:
    if part is None:
        return ""
    return part.text or ("" if part == _component("") else part.digest[:12])


@dataclass(frozen=True, slots=True)
class Outcome:
    """A callable, and the result of the cache lookup."""

    compiled: Compiled
    found: Hit | Miss


def compiled_graph(
    key: GraphKey,
    store: FileStore,
    make: Callable[[], Artifact],
    constants: Mapping[str, Any] | None = None,
    otherwise: Boxed | None = None,
    explain: bool = True,
) -> Outcome:
    """The callable of a graph. `make` is called only if the key has no complete entry.

    `explain`: report on a miss what changed. The other arguments are those of `load`. Raises what
    `make` raises, `Unavailable`, `BuildFailed`, OSError.
    """

    def loaded(artifact: Artifact) -> Compiled:
        return load(artifact, store, constants, otherwise)

    found = look_up(key, store, explain)
    if isinstance(found, Hit):
        try:
            return Outcome(loaded(found.artifact), found)
        except (Unavailable, BuildFailed, OSError, UnknownOperation, KeyError, AttributeError):
            # The entry refers to something that does not exist: rebuild it.
            found = Miss("damaged")
    compiled = loaded(make())
    with contextlib.suppress(OSError):
        keep(key, compiled.artifact, store)
    return Outcome(compiled, found)


def miss_in_words(found: Hit | Miss) -> str:
    """A one-line explanation of a miss; "" for a hit."""
    if isinstance(found, Hit):
        return ""
    if found.reason != "changed":
        return {
            "first": "no entry of a similar graph",
            "damaged": "the entry is damaged",
            "unexplained": "no entry for this graph",
        }[found.reason]
    changes = [
        f"{change.name}: {change.before or 'none'} → {change.now or 'none'}"
        for change in found.changed
    ]
    return "; ".join(changes)
