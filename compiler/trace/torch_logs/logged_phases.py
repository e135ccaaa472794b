"""Timed phases: begin and end events of torch's Chromium trace (`chromium_event`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcw.compiler.trace.compile_names import CompileNames
from tcw.compiler.trace.records import Phase

DEEPEST = 1000
_MOST_IDS = 10_000_000
_SECONDS = 1e10


@dataclass
class _Open:
    id: int
    name: str
    start: float
    compile_id: str
    parent: int | None
    backward: bool


class Phases:
    """The phases that are open, by thread."""

    def __init__(self, names: CompileNames) -> None:
        self._names = names
        self.origin: float | None = None
        """Unix time of the first event, seconds."""
        self.timed: set[str] = set()
        """Compiles with phases of their own."""
        self._open: dict[int, list[_Open]] = {}
        self.backward = False
        """Whether torch marks the phase that ended last as part of a backward."""
        self._next = 0

    @property
    def any(self) -> bool:
        """Whether the log has any."""
        return self._next > 0

    def event(self, event: Any) -> Phase | None:
        """The phase that this event ends; None for another event."""
        if not isinstance(event, dict):
            return None
        name, mark, time = event.get("name"), event.get("ph"), event.get("ts")
        if not isinstance(name, str) or not isinstance(time, (int, float)):
            return None
        seconds = time / 1e6
        if not 0 <= seconds <= _SECONDS:
            return None
        if self.origin is None:
            self.origin = seconds
        thread = event.get("tid")
        thread = thread if isinstance(thread, int) and 0 <= thread < 2**63 else 0
        arguments = event.get("args")
        compile_id = arguments.get("compile_id") if isinstance(arguments, dict) else None
        compile_id = compile_id if isinstance(compile_id, str) and compile_id != "None" else ""
        backward = isinstance(arguments, dict) and arguments.get("is_backward") is True
        stack = self._open.setdefault(thread, [])
        if mark in ("B", "X") and len(stack) < DEEPEST and self._next < _MOST_IDS:
            parent = stack[-1].id if stack else None
            phase = _Open(self._next, name, seconds, compile_id, parent, backward)
            self._next += 1
            if mark == "B":
                stack.append(phase)
                return None
            took = event.get("dur")
            took = took / 1e6 if isinstance(took, (int, float)) and 0 <= took <= 1e15 else 0.0
            return self._ended(phase, seconds + took, thread)
        if mark == "E" and any(phase.name == name for phase in stack):
            while stack[-1].name != name:
                stack.pop()  # its end is not in the log
            return self._ended(stack.pop(), seconds, thread)
        return None

    def _ended(self, one: _Open, end: float, thread: int) -> Phase:
        self.backward = one.backward
        compile_id = self._names.of(one.compile_id)  # not before: it begins after its first phase
        if compile_id:
            self.timed.add(compile_id)
        return Phase(
            id=one.id,
            name=one.name,
            start=round(max(0.0, one.start - (self.origin or 0.0)), 6),
            seconds=round(max(0.0, end - one.start), 6),
            parent=one.parent,
            compile_id=compile_id,
            thread=thread,
        )

    def summed(self, compile_id: str, start: float, nested: list[tuple[str, float]]) -> list[Phase]:
        """Phases of a compile that the log has only as totals, each within the previous one."""
        if compile_id in self.timed or self._next + len(nested) >= _MOST_IDS:
            return []
        if self.origin is None:
            self.origin = start
        phases: list[Phase] = []
        for name, seconds in nested:
            parent = phases[-1].id if phases else None
            begin = round(max(0.0, start - self.origin), 6)
            phases.append(
                Phase(
                    id=self._next,
                    name=name,
                    start=begin,
                    seconds=seconds,
                    parent=parent,
                    compile_id=compile_id,
                )
            )
            self._next += 1
        return phases
