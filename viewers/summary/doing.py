"""What a recording is doing, or was doing at its last record."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.trace.records import Progress, Stage, StageStart
from tcw.viewers.recording import Recording


@dataclass(frozen=True)
class Doing:
    stage: Stage
    activity: str
    """`call 1 of 4`; of a graph in a stage its id, `0/0/forward`."""

    @property
    def text(self) -> str:
        """`build: 0/0/forward`."""
        return f"{self.stage}: {self.activity}" if self.activity else self.stage


def doing(recording: Recording) -> Doing | None:
    """The later one of the last progress and the last stage that a graph entered; None before
    either."""
    progress, start = recording.last(Progress), recording.last(StageStart)
    if start is not None and (progress is None or start.at >= progress.at):
        return Doing(start.stage, start.graph or start.compile_id)
    return Doing(progress.stage, progress.activity) if progress is not None else None
