"""Records a file in a real worker, and checks what has to hold however that goes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Environment,
    Failure,
    FixTrial,
    Settings,
    Start,
)
from tcw.viewers.recording import Recording
from tcw.workbench.fixes.trials import tried
from tcw.workbench.worker.client import Trials, record

R = TypeVar("R")
MARK = "TCW_TEST_MARK"
DEFAULTS: dict[str, Any] = {"until": "capture"}
"""Settings of a recording unless a test says otherwise."""


@dataclass
class Recorded:
    records: list[AnyRecord]
    end: End
    file: Path

    def all(self, kind: type[R]) -> list[R]:
        return [found for found in self.records if isinstance(found, kind)]

    @cached_property
    def recording(self) -> Recording:
        """The same as a viewer reads it."""
        return Recording(self.records)

    @property
    def failure(self) -> Failure:
        failures = self.all(Failure)
        assert len(failures) == 1, failures
        return failures[0]

    @property
    def line(self) -> int | None:
        place = self.failure.location
        assert place is not None, self.failure
        assert place.file == str(self.file), place
        return place.line

    @property
    def imported_torch(self) -> bool:
        return bool(self.all(Environment))


def recorded(
    folder: Path, text: str | bytes | None, *, tries: bool = False, **settings: Any
) -> Recorded:
    """Write `text` to a file, record it until capture unless told otherwise, check the trace.
    `tries`: try the fixes of its findings."""
    file = folder / settings.pop("name", "model.py")
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    settings = DEFAULTS | settings
    settings.setdefault("timeout", 480.0)
    trace = folder / "run.tcw"
    streamed: list[AnyRecord] = []
    wanted = Settings(file=str(file), **settings)

    def fixes(runs: Trials) -> Iterator[FixTrial]:
        return tried(wanted, Recording(streamed), runs, 120.0)

    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    try:
        end = record(wanted, trace=trace, on_record=streamed.append, tries=fixes if tries else None)
    finally:
        del os.environ[MARK]
    assert left_behind(mark) == []
    read = read_trace(trace)
    assert read.losses.total == 0
    assert not read.losses.partial
    assert isinstance(read.records[0], Start)
    assert read.records[-1] == end
    assert sum(isinstance(found, End) for found in read.records) == 1
    assert sorted(streamed, key=repr) == sorted(read.records, key=repr)
    assert all(found.culprit != "tcw" for found in streamed if isinstance(found, Failure))
    return Recorded(read.records, end, file)


def left_behind(mark: str) -> list[str]:
    """Command lines of living processes that were started with this mark in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return found


def parent_of(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[1])
