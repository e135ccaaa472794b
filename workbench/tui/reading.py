"""Reads the trace on the screen as it grows, and follows the state of its recording."""

from __future__ import annotations

import math
import time

from tcw.compiler.trace.records import AnyRecord, Resumed, Run
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import chrome
from tcw.viewers.reader import Reader
from tcw.viewers.recording import Recording
from tcw.workbench.tui.live_feed import Feed, LiveFeed

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
