"""Cache entries: what was recorded of each, and which one served a call that did not compile.

torch can report the code object that it is about to run (`set_bytecode_debugger_callback`,
torch/csrc/dynamo/eval_frame_cpp.cpp), of which each cache entry has its own. torch 2.11 cannot, but
moves the entry that hit to the front of its list (`ExtraState::move_to_front`): one that was
already there may or may not have served, and is left out.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcw.compiler.control.hooks import Missing, RecordingHook, Uninstall, resolve
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import name_of
from tcw.compiler.trace.records import Guard, Guards, Location

_CALLBACK = "torch._C._dynamo.eval_frame:set_bytecode_debugger_callback"
_LISTS = "torch._C._dynamo.eval_frame:_debug_get_cache_entry_list"


@dataclass
class RecordedEntry:
    """One cache entry, as needed to explain recompiles and calls."""

    code: types.CodeType
    """The user's code object, which owns the list of entries."""
    guards: tuple[Guard, ...]
    global_state: dict[str, Any]
    """The torch state that the entry demands, as `GlobalStateGuard` serialises it."""
    own_lines: Mapping[str, Location]
    """Source -> the deepest line in the user's own files that made torch guard it."""


_book: weakref.WeakKeyDictionary[Any, RecordedEntry] = weakref.WeakKeyDictionary()
"""By torch's own guard manager. An entry that torch drops (`torch._dynamo.reset()`, a deallocated
model) disappears, so reused compile ids are never confused."""


def keep_entry(
    guard_manager: Any,
    code: types.CodeType,
    record: Guards,
    global_state: dict[str, Any],
    own_lines: Mapping[str, Location],
) -> None:
    _book[guard_manager] = RecordedEntry(code, record.guards, global_state, own_lines)


def entry_of(guard_manager: Any) -> RecordedEntry | None:
    """The recorded entry of this guard manager; None if it was not recorded."""
    return _book.get(guard_manager)


def codes_with_entries() -> list[types.CodeType]:
    """The user's code objects that have recorded entries: distinct, oldest first."""
    by_id = {id(entry.code): entry.code for entry in list(_book.values())}
    return list(by_id.values())


class CacheEntries:
    """Watches the cache entries of all recorded compiles, one call at a time.

    The worker calls `begin` before a call and `served` after it. Nothing is watched between calls,
    so timed calls are not affected.
    """

    def __init__(self) -> None:
        self._ran: list[types.CodeType] = []
        self._before: dict[int, list[str]] = {}
        self._restore: Uninstall | None = None
        self._watching = False

    def begin(self, recorder: Recorder) -> None:
        """Start watching; the next `served` reports the entries that ran since."""
        with Safely(recorder, "what serves a call"):
            self._stop()
            self._ran = []
            self._before = {id(code): _names(_entries(code)) for code in codes_with_entries()}
            self._restore = _watch(self._ran)
            self._watching = True

    def served(self, recorder: Recorder) -> tuple[str, ...]:
        """Compile ids whose entries ran in the call but were not compiled in it.

        Distinct, in the order in which they first ran. Empty without a preceding `begin`.
        """
        hits: list[str] = []
        with Safely(recorder, "what served a call"):
            if self._watching:
                exact = self._restore is not None
                self._stop()
                hits = self._by_code() if exact else self._by_order()
        fresh = set(recorder.compiled_in_call)
        return tuple(hit for hit in dict.fromkeys(hits) if hit not in fresh)

    def _stop(self) -> None:
        self._watching = False
        if self._restore is not None:
            self._restore()
            self._restore = None

    def _by_code(self) -> list[str]:
        names = {
            id(entry.code): name_of(entry.compile_id)
            for code in codes_with_entries()
            for entry in _entries(code)
        }
        return [names[id(code)] for code in self._ran if id(code) in names]

    def _by_order(self) -> list[str]:
        hits: list[str] = []
        for code in codes_with_entries():
            hits += came_forward(self._before.get(id(code), []), _names(_entries(code)))
        return hits


def came_forward(before: list[str], after: list[str]) -> list[str]:
    """The entries that moved to the front of a list whose other entries keep their order.

    >>> came_forward(["0/2", "0/1", "0/0"], ["0/0", "0/2", "0/1"])
    ['0/0']
    """
    place = {name: index for index, name in enumerate(before)}
    rest = len(after)
    while rest > 0 and after[rest - 1] in place:
        if rest < len(after) and place[after[rest - 1]] > place[after[rest]]:
            break
        rest -= 1
    return [name for name in after[:rest] if name in place]


def _names(entries: list[Any]) -> list[str]:
    return [name_of(entry.compile_id) for entry in entries]


def _entries(code: types.CodeType) -> list[Any]:
    """A code object's cache entries, most recently used first, without those that torch dropped."""
    from torch._C._dynamo import eval_frame

    return [
        entry
        for entry in eval_frame._debug_get_cache_entry_list(code)
        if entry_of(entry.guard_manager) is not None
    ]


def _watch(ran: list[types.CodeType]) -> Uninstall | None:
    """Note the code object of every frame that torch runs; None if torch cannot report it."""
    try:
        resolve(_CALLBACK)
    except Missing:
        return None
    from torch._C._dynamo import eval_frame

    others = eval_frame.get_bytecode_debugger_callback()
    note = ran.append

    def running(code: types.CodeType) -> None:
        note(code)
        if others is not None:
            others(code)

    eval_frame.set_bytecode_debugger_callback(running)
    return lambda: eval_frame.set_bytecode_debugger_callback(others)


def _install(recorder: Recorder) -> Uninstall:
    """Installs nothing: `CacheEntries` watches only during a call."""
    return lambda: None


HOOK = RecordingHook(
    name="cache entries",
    offers="which cache entry served each call that did not compile",
    needs=(_LISTS,),
    install=_install,
    stage="capture",
    test="capture/test_cache_entries.py",
)
