"""One recording of a target, on this machine."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tcw.compiler.trace.reader import TraceError
from tcw.compiler.trace.records import End, Failure, Settings
from tcw.viewers.recording import Recording
from tcw.workbench.cli.revisions import at_revision
from tcw.workbench.worker.client import record


class RecordedTarget(NamedTuple):
    """A recording and how it ended."""

    recording: Recording
    end: End


class RecordTarget(Protocol):
    """Records the settings' file, at a git revision if one is given: `here`, or on a cluster.
    Raises `NoRevision`; `stop` ends it as interrupted."""

    def __call__(
        self, settings: Settings, revision: str, stop: threading.Event
    ) -> RecordedTarget: ...


def read(file: Path) -> RecordedTarget:
    """An existing trace, or a log of torch's. Nothing is run."""
    try:
        recording = Recording.open(file)
    except (TraceError, OSError) as error:
        failed = Failure(doing="reading it", type=type(error).__name__, message=str(error))
        return RecordedTarget(Recording([failed]), End(status="failed", seconds=0.0))
    return RecordedTarget(recording, recording.end or End(status="incomplete", seconds=0.0))


def here(settings: Settings, revision: str, stop: threading.Event) -> RecordedTarget:
    """See `RecordTarget`."""
    with ExitStack() as stack:
        if revision:
            file = stack.enter_context(at_revision(Path(settings.file), revision))
            settings = msgspec.structs.replace(settings, file=str(file))
        recording = Recording()
        end = record(settings, trace=None, on_record=lambda one: recording.feed([one]), stop=stop)
        if recording.end is None:
            recording.feed([end])
        return RecordedTarget(recording, end)
