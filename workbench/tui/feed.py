"""Where the records on the screen come from, read away from the screen's thread."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from textual.message import Message

from compiler.trace.losses import Losses
from compiler.trace.reader import (
    CHUNK,
    Decoder,
    FileFollower,
    TraceDecoder,
    TraceError,
    decoder_for,
)
from compiler.trace.records import AnyRecord
from workbench.tui.messages import Delivered, Unreadable
from workbench.worker.trace_file import is_recording

EVERY = 0.2
"""Seconds between looks at a trace that has not ended."""


Post = Callable[[Message], object]


class Feed(Protocol):
    """Posts records as `Delivered`, and `Unreadable` where it has to give up."""

    every: float
    """Seconds between two deliveries …"""
    pause: float
    """… and those that the screen asks for, where it is slow to show."""

    @property
    def name(self) -> str:
        """What is read, in a word."""

    @property
    def file(self) -> Path | None:
        """The trace that the records are in; None if they are not kept."""

    @property
    def losses(self) -> Losses:
        """What could not be read."""

    def start(self, post: Post) -> None:
        """Begin, in a thread of its own."""

    def stop(self) -> None:
        """Leave off; where a worker runs, it ends."""

    def alive(self) -> bool:
        """Whether more may come, as far as this machine can say."""


class FileFeed:
    """A trace file that may still grow."""

    def __init__(self, path: Path) -> None:
        self.file = path
        self.name = path.name
        self.decoder: Decoder = TraceDecoder()
        self._known = False
        """Whether what was read says what kind of file this is."""
        self.every = self.pause = EVERY
        self._post: Post = lambda message: None
        self._over = Event()

    @property
    def losses(self) -> Losses:
        return self.decoder.losses

    def start(self, post: Post) -> None:
        self._post = post
        Thread(target=self._run, daemon=True, name="trace feed").start()

    def stop(self) -> None:
        self._over.set()

    def alive(self) -> bool:
        return is_recording(self.file)

    def _run(self) -> None:
        try:
            self._read()
        except (OSError, TraceError) as error:
            self._post(Unreadable(str(error)))

    def _read(self) -> None:
        follower = FileFollower(self.file)
        try:
            first = True
            while not self._over.is_set():
                records = self._decode(follower)
                if first and not records and self.decoder.losses.damaged:
                    raise TraceError(
                        f"{self.file} is not a tcw trace, nor a log of torch's: no line is a record"
                    )
                if first or records:
                    self._post(Delivered(records))
                first = False
                if self.decoder.ended:
                    return
                self._over.wait(self.pause)
        finally:
            follower.close()

    def _decode(self, follower: FileFollower) -> list[AnyRecord]:
        """All that there is. Records live as long as the screen: the collector need not look at
        them again and again, which would take three times as long as the decoding."""
        records: list[AnyRecord] = []
        large = False
        try:
            while not self._over.is_set() and (data := follower.read(CHUNK)):
                if len(data) > CHUNK // 4 and not large:
                    large = True
                    gc.disable()
                if not self._known:
                    self._known = True
                    self.decoder = decoder_for(data, self.file)
                records.extend(self.decoder.feed(data))
            if self._known:
                records.extend(self.decoder.finish())
                self.decoder.losses.archive = follower.ends_early
        finally:
            if large:
                gc.freeze()
                gc.enable()
        return records
