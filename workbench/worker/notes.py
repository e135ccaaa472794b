"""The recorder of a worker: it also remembers failed frames and counts calls."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.control.recorder import Recorder
from compiler.trace.records import FrameEnd, Record


@dataclass
class WorkerRecorder(Recorder):
    """A recorder whose last failed compile can be named when its exception arrives."""

    failed: str = ""
    """Compile id of the last frame that failed; "" for none since the call began."""

    calls: int = 0
    """Compiled calls so far."""

    def emit(self, record: Record) -> None:
        if isinstance(record, FrameEnd) and record.status == "failed":
            self.failed = record.compile_id
        super().emit(record)
