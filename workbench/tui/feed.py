"""Sources of the screen's records, each read in its own thread, and their reader."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from textual.message import Message

from tcw.compiler.protocol.commands import AnyCommand, Breakpoint
from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.output_file import is_recording
from tcw.compiler.trace.reader import (
    CHUNK,
    Decoder,
    FileFollower,
    TraceDecoder,
    TraceError,
    decoder_for,
)
from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Note,
    Record,
    Refused,
    Resumed,
    Run,
    Settings,
    Start,
    Waiting,
    WhatIf,
)
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import chrome
from tcw.viewers.reader import Reader
from tcw.viewers.recording import Recording

if TYPE_CHECKING:
    from tcw.workbench.worker.client import Driver


EVERY = 0.2
"""Seconds between looks at a trace that has not ended."""

Post = Callable[[Message], object]


@dataclass(eq=False)
class Delivered(Message):
    """The feed has read records; possibly none, the first time."""

    records: list[AnyRecord]


@dataclass(eq=False)
class Unreadable(Message):
    """The file cannot be read any further."""

    why: str


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
                        f"{self.file} is not a tcw trace or a torch log: no line is a record"
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


PATIENCE = 10.0
"""Seconds without a record after which a recording from elsewhere counts as over."""


class FeedReader(Reader):
    """Takes the records that a feed delivers. No widget."""

    def __init__(self, feed: Feed, navigator: Navigator) -> None:
        super().__init__(navigator, Recording(file=feed.file))
        self.source = feed
        self.state: chrome.State = "opening"
        self._since = time.monotonic()
        """When the compile went on."""
        self._followed = False
        self._grew = -math.inf
        self.view.live = True

    @property
    def seconds(self) -> float | None:
        """Since the compile went on; None if this screen does not drive it."""
        return time.monotonic() - self._since if self.view.driven else None

    def look(self) -> bool:
        """Update the state, since a process may be gone; True if it changed."""
        before = self.state
        if before in ("running", "waiting"):
            self._take_state()
        return self.state != before

    def _take_state(self) -> None:
        self.state = self._state()
        self.view.live = self.state in ("running", "waiting")

    def take(self, records: list[AnyRecord]) -> None:
        """Take delivered records."""
        now = time.monotonic()
        if records and self.state != "opening":
            self._grew = now
        if any(isinstance(record, Resumed | Run) for record in records):
            self._since = now
        self.feed(records)
        self.recording.losses = self.source.losses
        self.view.driven = isinstance(self.source, LiveFeed) and not self.source.ended
        if not self.view.playhead:
            self.look_at_last_run(records)
            self.show_facts()
        self._take_state()

    def _state(self) -> chrome.State:
        if isinstance(self.source, LiveFeed):
            return self._driven_state()
        end, failure = self.recording.end, self.recording.failure
        if end is None:
            self._followed = True
            growing = time.monotonic() - self._grew < PATIENCE
            return "running" if growing or self.source.alive() else "incomplete"
        if failure is not None or end.status not in ("ok", "exited", "incomplete"):
            return "failed"
        if end.status == "incomplete":
            return "incomplete"
        return "finished" if self._followed else "replay"

    def _driven_state(self) -> chrome.State:
        end, failure = self.recording.end, self.recording.failure
        if end is not None:
            ended_well = end.status in ("ok", "exited", "interrupted") and failure is None
            return "finished" if ended_well else "failed"
        if not self.source.alive():
            return "incomplete"
        waiting = self.view.track.waiting(self.view.track.count)
        if waiting is None:
            return "running"
        if waiting.kind != "end":
            return "waiting"
        run = self._run_of(self.recording, self.view.track.run)
        return "finished" if run.failure is None else "failed"
