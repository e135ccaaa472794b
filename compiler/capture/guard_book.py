"""What was recorded of each cache entry, looked up by torch's own guard manager.

The book keeps nothing alive. An entry that torch drops (`torch._dynamo.reset()`, a deallocated
model) disappears from the book, so reused compile ids are never confused.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcw.compiler.trace.records import Guard, Guards, Location


@dataclass
class CacheEntry:
    """One cache entry, as needed to explain recompiles and calls."""

    code: types.CodeType
    """The user's code object, which owns the list of entries."""
    guards: tuple[Guard, ...]
    global_state: dict[str, Any]
    """The torch state that the entry demands, as `GlobalStateGuard` serialises it."""
    own_lines: Mapping[str, Location]
    """Source -> the deepest line in the user's own files that made torch guard it."""


_entries: weakref.WeakKeyDictionary[Any, CacheEntry] = weakref.WeakKeyDictionary()


def keep(
    guard_manager: Any,
    code: types.CodeType,
    record: Guards,
    global_state: dict[str, Any],
    own_lines: Mapping[str, Location],
) -> None:
    _entries[guard_manager] = CacheEntry(code, record.guards, global_state, own_lines)


def entry_of(guard_manager: Any) -> CacheEntry | None:
    """The recorded entry of this guard manager; None if it was not recorded."""
    return _entries.get(guard_manager)


def codes() -> list[types.CodeType]:
    """The user's code objects that have recorded entries: distinct, oldest first."""
    by_id = {id(entry.code): entry.code for entry in list(_entries.values())}
    return list(by_id.values())
