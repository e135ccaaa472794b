"""Phases: everything that torch itself times with `dynamo_timed`, properly nested.

torch's `ChromiumEventLogger` (torch/_dynamo/utils.py) receives each start and end with torch's own
clock readings. The durations use these, so they equal `compilation_time_metrics`.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, around_call, before_call, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id, name_of
from tcw.compiler.trace.records import Phase

LOGGER = "torch._dynamo.utils:ChromiumEventLogger"


@dataclass
class _Open:
    """A phase that has started."""

    id: int
    name: str
    compile_id: str
    start: float
    parent: int | None
    torch_start_ns: int
    cpu: float = 0.0
    """CPU seconds at its start."""
    aside: float = 0.0
    """`Recorder.aside_seconds` at its start."""
    last_end: float = 0.0
    """End of the last child: the phase cannot end before it."""


class _Stack(threading.local):
    def __init__(self) -> None:
        self.open: list[_Open] = []


class Phases:
    """Turns starts and ends into `Phase` records, with one stack per thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._ids = itertools.count()
        self._stack = _Stack()
        # torch reads the wall clock; the recording uses the monotonic clock
        self._wall_at_start = time.time_ns() - int(recorder.writer.now() * 1e9)

    def starts(self, name: str, wall_ns: int, compile_id: str, depth: int) -> None:
        """A phase starts. `depth`: the number of enclosing phases open in torch on this thread."""
        stack = self._stack.open
        # torch drops phases when a compile restarts; phases from before our hook are unknown
        del stack[depth:]
        parent = stack[-1] if stack else None
        aside = self.recorder.aside_seconds
        start = (wall_ns - self._wall_at_start) / 1e9 - aside
        if parent is not None:
            start = max(start, parent.start)  # the wall clock may be set back
        stack.append(
            _Open(
                id=next(self._ids),
                name=name,
                compile_id=compile_id or (parent.compile_id if parent else ""),
                start=start,
                parent=parent.id if parent else None,
                torch_start_ns=wall_ns,
                cpu=self.recorder.cpu_seconds(),
                aside=aside,
            )
        )

    def ends(self, name: str, wall_ns: int, start_ns: int) -> None:
        """A phase ends; without a known start, nothing is recorded."""
        stack = self._stack.open
        for index in range(len(stack) - 1, -1, -1):
            if stack[index].name == name and stack[index].torch_start_ns == start_ns:
                break
        else:
            return
        phase = stack[index]
        del stack[index:]
        aside = self.recorder.aside_seconds - phase.aside
        end = max(phase.start + (wall_ns - start_ns) / 1e9 - aside, phase.start, phase.last_end)
        if stack:
            stack[-1].last_end = max(stack[-1].last_end, end)
        self.recorder.emit(
            Phase(
                id=phase.id,
                name=phase.name,
                start=phase.start,
                seconds=end - phase.start,
                parent=phase.parent,
                compile_id=phase.compile_id,
                call=self.recorder.call,
                thread=threading.get_ident(),
                cpu_seconds=max(0.0, self.recorder.cpu_seconds() - phase.cpu),
            )
        )


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo.utils import ChromiumEventLogger

    phases = Phases(recorder)
    safely = Safely(recorder, HOOK.name)

    def started(logger: Any, event_name: str, time_ns: int, *args: Any, **kwargs: Any) -> None:
        given = kwargs.get("compile_id", args[2] if len(args) > 2 else None)
        compile_id = name_of(given) if given is not None else current_compile_id()
        safely(phases.starts, event_name, time_ns, compile_id, len(logger.get_stack()))

    @contextmanager
    def ending(
        logger: Any,
        event_name: str,
        time_ns: int,
        metadata: Any,
        start_time_ns: int,
        *_: Any,
        **__: Any,
    ) -> Iterator[None]:
        try:
            yield
        finally:
            safely(phases.ends, event_name, time_ns, start_time_ns)

    return undo_all(
        before_call(ChromiumEventLogger, "log_event_start", started),
        around_call(ChromiumEventLogger, "log_event_end", ending),
    )


HOOK = RecordingHook(
    name="phases",
    offers="time per phase of the compile, nested",
    needs=(
        f"{LOGGER}.log_event_start(event_name, time_ns, compile_id)",
        f"{LOGGER}.log_event_end(event_name, time_ns, metadata, start_time_ns)",
        f"{LOGGER}.get_stack",
    ),
    install=install,
    stage="capture",
    test="inductor/test_phases.py",
)
