"""Records of a compile that is driven from this screen, and the commands that drive it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tcw.compiler.control.commands import AnyCommand, Breakpoint
from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Note,
    Record,
    Refused,
    Settings,
    Start,
    Waiting,
    WhatIf,
)
from tcw.workbench.tui.feed import FileFeed, Post
from tcw.workbench.tui.messages import Delivered, Unreadable

if TYPE_CHECKING:
    from tcw.workbench.worker.client import Driver

EVERY = 0.1
"""Seconds between deliveries while the compile runs; a stop is delivered at once."""
_URGENT: tuple[type[Record], ...] = (Waiting, Refused, End, Start, WhatIf)


Starts = Callable[
    [Settings, Path | None, Callable[[AnyRecord], None], Sequence[Breakpoint]], "Driver"
]
"""`Driver`; it passes on records from the driver's thread."""


class LiveFeed:
    """A driven recording; posts its records in batches."""

    def __init__(
        self,
        drive: Starts,
        settings: Settings,
        trace: Path | None,
        breakpoints: Sequence[Breakpoint] = (),
    ) -> None:
        self.drive = drive
        self.settings = settings
        self.file = trace
        self.breakpoints = breakpoints
        self.driver: Driver | None = None
        self.name = Path(settings.file).name
        self.losses = Losses()
        self.every = self.pause = EVERY
        self.ended = False
        self._post: Post = lambda message: None
        self._batch: list[AnyRecord] = []
        self._lock = threading.Lock()
        self._arrived = threading.Event()
        self._urgent = threading.Event()

    def start(self, post: Post) -> None:
        self._post = post
        threading.Thread(target=self._deliver, daemon=True, name="live feed").start()
        post(Delivered([]))
        try:
            self.driver = self.drive(self.settings, self.file, self._take, self.breakpoints)
        except OSError as error:
            post(Unreadable(f"{self.file}: {error.strerror or error}"))

    def send(self, command: AnyCommand) -> None:
        if self.driver is not None:
            self.driver.send(command)

    def note(self, note: Note) -> None:
        if self.driver is not None:
            self.driver.note(note)

    def stop(self) -> None:
        """End the worker, and wait for the last line of its trace."""
        if self.driver is not None:
            self.driver.stop()
            self.driver.join()
        self.ended = True
        self._urgent.set()
        self._arrived.set()

    def alive(self) -> bool:
        return not self.ended

    def _take(self, record: AnyRecord) -> None:
        with self._lock:
            self._batch.append(record)
        if isinstance(record, End):
            self.ended = True
        if isinstance(record, _URGENT):
            self._urgent.set()
        self._arrived.set()

    def _deliver(self) -> None:
        while True:
            self._arrived.wait()
            self._urgent.wait(self.pause)
            self._arrived.clear()
            self._urgent.clear()
            with self._lock:
                batch, self._batch = self._batch, []
                if batch:
                    self._post(Delivered(batch))
            if not batch and self.ended:
                return


Feed = FileFeed | LiveFeed
"""The source of a screen's records."""
