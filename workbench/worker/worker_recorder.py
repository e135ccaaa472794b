"""The recorder of a worker: it also remembers failed frames and counts calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.trace.records import (
    Bytecode,
    FrameEnd,
    Progress,
    Record,
    Settings,
    Source,
    Step,
    Text,
)

if TYPE_CHECKING:  # the recorder is there before torch is imported
    from tcw.workbench.worker.results import CallResults

NOT_KEPT = (Step, Bytecode, Text, Source, Progress)
"""Large or numerous records that no comparison of two runs needs."""


@dataclass
class WorkerRecorder(Recorder):
    """A recorder that can name the last failed compile when its exception arrives."""

    failed: str = ""
    """Compile id of the last frame that failed; "" for none since the call began."""

    calls: int = 0
    """Compiled calls so far."""

    results: CallResults | None = None
    """In a trial: collects what the calls leave, to compare it with the calls without the fix."""

    _counting: Lock = field(default_factory=Lock)

    run: list[Record] | None = None
    """The records of this run without `NOT_KEPT`, if the compile is driven."""

    unwritten: list[Record] | None = None
    """Gets all records instead of the trace, while a call is compiled again only to look at it."""

    def emit(self, record: Record) -> None:
        if self.unwritten is not None:
            self.unwritten.append(record)
            return
        if self.run is not None and not isinstance(record, NOT_KEPT):
            self.run.append(record)
        if isinstance(record, FrameEnd) and record.status == "failed":
            self.failed = record.compile_id
        super().emit(record)

    def begin_call(self) -> None:
        """Count a call of this thread, and make it its current one."""
        with self._counting:
            self.calls += 1
            self.call = self.calls

    def begin_run(self, settings: Settings) -> None:
        """The same model is compiled again from the start, with other settings."""
        self.start_over()
        self.settings = settings
        self.graphs_unknown = True
        self.failed = ""
        self.call = self.calls = 0
        self.kept.clear()
        self._warned.clear()
