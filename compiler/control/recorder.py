"""The recorder: what every hook is given. It writes records and knows where the compile stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compiler.trace.records import RandomOperation, Record, Settings, Source, TextHash, Warned
from compiler.trace.writer import TraceWriter


@dataclass
class Recorder:
    """Shared by all hooks of one recording, all in the worker process."""

    writer: TraceWriter
    settings: Settings
    call: int = 0
    """Number of the call being made, from 1; 0 outside of calls."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """What this call passes, by name, where the worker makes it; empty outside of calls."""
    compile_id: str = ""
    """torch's `frame/compile` of the frame being compiled, set by the frame hook."""
    attempt: int = 0
    compiled_in_call: list[str] = field(default_factory=list)
    """Compile ids that the running call has finished, set by the frame hook."""
    quiet: bool = False
    """True while the tool itself makes torch work (timing, comparing): hooks record nothing."""
    aside_seconds: float = 0.0
    """Wall seconds so far that the recording spent inside compiles on what torch would not have
    done (predicting GPU code, waiting for a person). A clock that starts and ends around them takes
    them off."""
    aside_cpu_seconds: float = 0.0
    """The same in CPU seconds, of the children that were waited for too."""
    random_operations: list[RandomOperation] = field(default_factory=list)
    """Those of all graphs that AOTAutograd traced, set by its hook."""
    graphs_unknown: bool = True
    """Whether there may be compiled graphs that no hook of ours has seen: AOTAutograd's hook is
    not there, or its cache has served some."""
    user_root: str = ""
    """Folder of the user's file: its files, and those they import from it, are the user's own."""
    live: Callable[[Record], None] | None = None
    """Given each record after it is written: where a person drives the compile, it may wait here
    (docs/notes/step.md)."""
    starts: int = 0
    """How often ids began to count from 0 again."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """All overrides in force: those of the settings, and what a person has chosen since."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Files that are not run as they are on disk, with their text."""
    kept: dict[str, object] = field(default_factory=dict)
    """What stages of a driven compile keep, so that its code can be timed later; by graph id."""
    _sources: set[str] = field(default_factory=set)
    _kernels: int = 0
    _warned: set[object] = field(default_factory=set)

    def emit(self, record: Record) -> None:
        self.writer.emit(record)
        if self.live is not None and not self.quiet:
            self.live(record)

    def text(self, body: str) -> TextHash:
        return self.writer.text(body)

    def source(self, file: str) -> None:
        """Store a source file that a record points into, once; an unreadable file is left out."""
        if file in self._sources:
            return
        self._sources.add(file)
        if file in self.texts:
            self.emit(Source(file=file, text=self.text(self.texts[file])))
            return
        try:
            with open(file, encoding="utf-8", errors="replace") as stream:
                body = stream.read()
        except (OSError, ValueError):
            return
        self.emit(Source(file=file, text=self.text(body)))

    def warn_once(self, message: str, key: object = None, asked: bool = False) -> None:
        """Record a `Warned`, unless one with this key (the message, where none is given) was."""
        key = message if key is None else key
        if key not in self._warned:
            self._warned.add(key)
            self.emit(Warned(message=message, asked=asked))

    @property
    def beyond_caches(self) -> str:
        """Where to find what a cache hit leaves out of the trace, for a warning."""
        if self.settings.cached:
            return "without --cached everything is compiled anew and recorded"
        return "this recording compiled the same graph before, and has all of it there"

    def start_over(self) -> None:
        """The same model is compiled again, by another engine or in another run: ids count from 0
        again."""
        self.starts += 1
        self.compile_id = ""
        self.attempt = self._kernels = 0
        self.compiled_in_call.clear()
        self.random_operations.clear()

    def next_kernel(self) -> str:
        """A fresh kernel id: `k0`, `k1`, …"""
        self._kernels += 1
        return f"k{self._kernels - 1}"
