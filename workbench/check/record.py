"""One recording of a target, on this machine."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from compiler.trace.records import End, Settings
from viewers.recording import Recording
from workbench.cli.revisions import at_revision
from workbench.worker.client import record


class Recorded(NamedTuple):
    """A recording and how it ended."""

    recording: Recording
    end: End


class Record(Protocol):
    """Records the settings' file, at a git revision if one is given: `here`, or on a cluster.
    Raises `NoRevision`; `stop` ends it as interrupted."""

    def __call__(self, settings: Settings, revision: str, stop: threading.Event) -> Recorded: ...


def here(settings: Settings, revision: str, stop: threading.Event) -> Recorded:
    """See `Record`."""
    with ExitStack() as stack:
        if revision:
            file = stack.enter_context(at_revision(Path(settings.file), revision))
            settings = msgspec.structs.replace(settings, file=str(file))
        recording = Recording()
        end = record(settings, trace=None, on_record=lambda one: recording.feed([one]), stop=stop)
        if recording.end is None:
            recording.feed([end])
        return Recorded(recording, end)
