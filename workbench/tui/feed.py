"""Sources of the screen's records, each read in its own thread."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from textual.message import Message

from tcw.compiler.output_file import is_recording
from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.reader import (
    CHUNK,
    Decoder,
    FileFollower,
    TraceDecoder,
    TraceError,
    decoder_for,
)
from tcw.compiler.trace.records import AnyRecord
from tcw.workbench.tui.messages import Delivered, Unreadable

EVERY = 0.2
"""Seconds between looks at a trace that has not ended."""


Post = Callable[[Message], object]


class FileFeed:
    """A trace file that may still grow. Its records are posted as `Delivered`, with `Unreadable`
    if it cannot be read any further."""

    def __init__(self, path: Path) -> None:
        self.file = path
        self.name = path.name
        self.decoder: Decoder = TraceDecoder()
        self._known = False
        """Whether the kind of the file has been found out."""
        self.every = self.pause = EVERY
        """Seconds between two deliveries; the screen makes the pause longer when it is slow."""
        self._post: Post = lambda message: None
        self._over = Event()

    @property
    def losses(self) -> Losses:
        """What could not be read."""
        return self.decoder.losses

    def start(self, post: Post) -> None:
        self._post = post
        Thread(target=self._run, daemon=True, name="trace feed").start()

    def stop(self) -> None:
        self._over.set()

    def alive(self) -> bool:
        """Whether more records may come, as far as this machine can tell."""
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
        """Read all that there is. Records live as long as the screen, so the garbage collector
        skips them: to visit them again and again would take three times as long as decoding
        them."""
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
