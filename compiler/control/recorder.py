"""The recorder, passed to every hook. It writes records and tracks where the compile is."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tcw.compiler.trace.records import RandomOperation, Record, Settings, Source, TextHash, Warned
from tcw.compiler.trace.records.session import WarnedCode
from tcw.compiler.trace.writer import TraceWriter


class _Call(threading.local):
    number: int | None = None


@dataclass
class Recorder:
    """Shared by all hooks of one recording, all in the worker process."""

    writer: TraceWriter
    settings: Settings
    arguments: Mapping[str, object] = field(default_factory=dict)
    """The current call's arguments by name, if the worker makes the call; empty outside calls."""
    compile_id: str = ""
    """torch's `frame/compile` id of the frame being compiled, set by the frame hook."""
    attempt: int = 0
    compiled_in_call: list[str] = field(default_factory=list)
    """Compile ids finished during the current call, set by the frame hook."""
    quiet: bool = False
    """True while the tool itself runs torch (timing, comparing): hooks record nothing."""
    aside_seconds: float = 0.0
    """Wall seconds that the recording has spent inside compiles on work of its own (predicting GPU
    code, waiting for a person). A clock that spans such work subtracts them."""
    aside_cpu_seconds: float = 0.0
    """The same in CPU seconds, including child processes that were waited for."""
    random_operations: list[RandomOperation] = field(default_factory=list)
    """Random operations of all graphs that AOTAutograd traced, set by its hook."""
    misread_numbers: list[RandomOperation] = field(default_factory=list)
    """Numbers that Python's `random` draws and Inductor's code misreads, set by the hook of
    captured graphs (`tcw.compiler.graphs.drawn_numbers`)."""
    graphs_unknown: bool = True
    """Whether there may be compiled graphs that no hook has seen: AOTAutograd's hook is missing, or
    its cache has served some."""
    user_root: str = ""
    """Folder of the user's file. Its files, and those they import from it, are the user's own."""
    live: Callable[[Record], None] | None = None
    """Called with each record after it is written. If a person drives the compile, it may wait here
    (docs/notes/step.md)."""
    starts: int = 0
    """How often ids have restarted at 0."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """All overrides in force: those of the settings, and those that a person has added since."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Files whose text on disk is replaced for the run, with their text."""
    kept: dict[str, object] = field(default_factory=dict)
    """What stages keep for checks after the compile, by kind (`tcw.compiler.graphs.realised`)."""
    _sources: set[str] = field(default_factory=set)
    _kernels: int = 0
    _warned: set[object] = field(default_factory=set)
    _call: _Call = field(default_factory=_Call)
    _last_call: int = 0
    """The call of the thread that set one last."""

    @property
    def call(self) -> int:
        """Number of this thread's current call, from 1; 0 outside calls. A thread that has begun
        none (one of autograd's) works for the call that began last."""
        own = self._call.number
        return self._last_call if own is None else own

    @call.setter
    def call(self, number: int) -> None:
        self._call.number = self._last_call = number

    def cpu_seconds(self) -> float:
        """CPU seconds of this process and the children that it has waited for, without those that
        the recording spent aside."""
        return _cpu_seconds() - self.aside_cpu_seconds

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Count what runs in the block as the recording's own work, not the compile's."""
        wall, cpu = time.perf_counter(), _cpu_seconds()
        try:
            yield
        finally:
            self.aside_seconds += time.perf_counter() - wall
            self.aside_cpu_seconds += _cpu_seconds() - cpu

    def emit(self, record: Record) -> None:
        self.writer.emit(record)
        if self.live is not None and not self.quiet:
            self.live(record)

    def text(self, body: str, needed: bool = False) -> TextHash:
        return self.writer.text(body, needed)

    def source(self, file: str) -> None:
        """Store a source file that a record points into, once; an unreadable file is skipped."""
        if file in self._sources:
            return
        self._sources.add(file)
        if file in self.texts:
            self.emit(Source(file=file, text=self.text(self.texts[file], needed=True)))
            return
        try:
            with open(file, encoding="utf-8", errors="replace") as stream:
                body = stream.read()
        except (OSError, ValueError):
            return
        self.emit(Source(file=file, text=self.text(body, needed=True)))

    def warn_once(
        self, message: str, key: object = None, asked: bool = False, code: WarnedCode = ""
    ) -> None:
        """Record a `Warned`, unless one with this key (by default the message) was recorded."""
        key = message if key is None else key
        if key not in self._warned:
            self._warned.add(key)
            self.emit(Warned(message=message, code=code, asked=asked))

    def served_from_torch_caches(self) -> None:
        """Say, once for all of torch's caches, what hits leave out of the trace."""
        self.warn_once(
            "some compiles were served from torch's caches: what they skipped (autograd graphs, "
            "passes, lowering, fusion, memory plan) is not recorded; their kernels are read from "
            f"the cached code, without user lines; {self.beyond_caches}"
        )

    @property
    def beyond_caches(self) -> str:
        """Where to find what a cache hit leaves out of the trace, for a warning."""
        if self.settings.program and self.settings.cached:
            return "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 compiles everything from scratch"
        if self.settings.cached:
            return "without --cached everything is compiled from scratch and recorded"
        return "this recording compiled the same graph before, and has all of it there"

    def start_over(self) -> None:
        """Prepare to compile the same model again, in another engine or run: ids restart at 0."""
        self.starts += 1
        self.compile_id = ""
        self.attempt = self._kernels = 0
        self.compiled_in_call.clear()
        self.random_operations.clear()
        self.misread_numbers.clear()

    def next_kernel(self) -> str:
        """A fresh kernel id: `k0`, `k1`, …"""
        self._kernels += 1
        return f"k{self._kernels - 1}"


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
