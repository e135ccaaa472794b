"""The warm start: from a graph's key to its callable. Only a miss runs lowering and the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tcw.compiler.runtime.artifact import Artifact
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.compiled import Boxed, Compiled, load
from tcw.compiler.runtime.graph_cache import GraphKey, Hit, Miss, keep, look_up
from tcw.compiler.runtime.operations import UnknownOperation
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.runtime.unavailable import Unavailable


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


def words(found: Hit | Miss) -> str:
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
