"""The process that measures, as measurements see it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from tcw.compiler.control.describe import class_name, message_of
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.trace.records import Progress, Record, Settings

_Run = TypeVar("_Run")


@dataclass(frozen=True)
class Host:
    """Where records go, and how to hide runs that are not the user's."""

    recorder: Recorder
    unrecorded: Callable[[], AbstractContextManager[None]]
    """Inside the block, hooks record nothing, and the output of the user's program is hidden."""

    @property
    def settings(self) -> Settings:
        """The settings of the recording."""
        return self.recorder.settings

    def emit(self, record: Record) -> None:
        """Record it."""
        self.recorder.emit(record)

    def with_hooks(self, prepare: Callable[[], _Run], records: bool) -> Callable[[], _Run]:
        """For timing inside `unrecorded`: hooks are switched on or off while a run is prepared,
        outside the timed part. A model that recompiles on the same inputs must not pass for one
        that does not, so compiles of timed calls are recorded; but those of a driven compile, which
        must not stop there."""
        if self.recorder.live is not None:
            return prepare

        def prepared() -> _Run:
            self.recorder.quiet = not records
            return prepare()

        return prepared

    def begins(self, activity: str) -> None:
        """Report what is measured from here on."""
        self.emit(Progress(stage="run", activity=activity))


def reason_of(error: BaseException, limit: int = 300) -> str:
    """`ValueError: its message`, for a record that says why something is not measured."""
    return f"{class_name(error)}: {message_of(error, limit)}"
