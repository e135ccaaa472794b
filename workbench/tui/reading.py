"""The trace on the screen: read as it grows, by run and engine, whole or up to a place in it."""

from __future__ import annotations

import math
import time

from compiler.trace.provenance import Provenance
from compiler.trace.records import AnyRecord, Resumed, Run
from viewers.panes import chrome
from viewers.panes.view import Facts, View
from viewers.playhead import Playhead
from viewers.recording import Recording
from viewers.timeline import Track
from workbench.tui.feed import Feed
from workbench.tui.live_feed import LiveFeed
from workbench.tui.navigator import Navigator

PATIENCE = 10.0
"""Seconds without a record after which a recording from elsewhere counts as over."""

Part = tuple[int, str]
"""(run, engine) of a trace; 0 and "" where it has only one."""


class Reading:
    """Takes what the feed delivers and keeps the facts of what is looked at. No widget."""

    def __init__(self, feed: Feed, navigator: Navigator) -> None:
        self.feed = feed
        self.navigator = navigator
        self.recording = Recording(file=feed.file)
        """The whole trace."""
        self.playhead = Playhead(self.recording)
        self.state: chrome.State = "opening"
        self._links: dict[Part, tuple[Provenance, int]] = {}
        """The links of a part, and how many of its records they were fed."""
        self._facts: dict[tuple[int, str, bool], Facts] = {}
        """By run and engine; True: up to the place to which the reader went back."""
        self._stood = 0
        """How many records the facts of a place in the past were worked out from."""
        self._since = time.monotonic()
        """When the compile went on."""
        self._followed = False
        self._grew = -math.inf
        self.view.track = Track()
        self.view.live = True

    @property
    def view(self) -> View:
        return self.navigator.view

    @property
    def seconds(self) -> float | None:
        """Since the compile went on; None where this screen does not drive it."""
        return time.monotonic() - self._since if self.view.driven else None

    def look(self) -> bool:
        """Whether the state has changed: a recording whose process is gone does not go on."""
        before = self.state
        if before in ("running", "waiting"):
            self._take_state()
        return self.state != before

    def _take_state(self) -> None:
        self.state = self._state()
        self.view.live = self.state in ("running", "waiting")

    def take(self, records: list[AnyRecord]) -> None:
        """Take records that were read."""
        now = time.monotonic()
        if records and self.state != "opening":
            self._grew = now
        before, grown = self.view.track.count, {self.view.track.run}
        if any(isinstance(record, Resumed | Run) for record in records):
            self._since = now
        self.recording.feed(records)
        self.recording.losses = self.feed.losses
        self.view.track.feed(records)
        if self.view.track.changes(before, self.view.track.count):
            grown.add(self.view.track.run)
            self._facts = {
                key: kept for key, kept in self._facts.items() if key[2] or key[0] not in grown
            }
        self.view.driven = isinstance(self.feed, LiveFeed) and not self.feed.ended
        if not self.view.playhead:
            self._look_at_last_run(records)
            self.show_facts()
        self._take_state()

    def _look_at_last_run(self, records: list[AnyRecord]) -> None:
        if any(isinstance(record, Run) for record in records):
            self.view.run = self.view.track.run

    # Facts

    def part(self, whole: Recording) -> tuple[Part, Recording]:
        """The run and the engine that are looked at, of the trace or of its beginning."""
        run = self.view.run if self.view.run in whole.runs else next(reversed(whole.runs), 0)
        found = whole.runs.get(run, whole)
        engine = self.view.engine
        if found.engines:
            engine = engine if engine in found.engines else next(iter(found.engines))
            return (run, engine), found.engines[engine]
        return (run, ""), found

    def show_facts(self) -> None:
        """Have the view look at the facts of its run, engine and place in time."""
        view = self.view
        past = bool(view.playhead)
        whole = self.playhead.at(view.playhead) if past else self.recording
        (run, engine), recording = self.part(whole)
        if past and view.track.changes(self._stood, view.playhead):
            self._facts = {key: kept for key, kept in self._facts.items() if not key[2]}
        self._stood = view.playhead if past else self._stood
        view.run, view.engine = run, engine
        known = self._facts.get((run, engine, past))
        if known is None:
            known = self._facts_of(whole, recording, run, engine, past)
        known.recording, known.whole = recording, self._run_of(self.recording, run)
        known.trace = self.recording
        view.facts = known
        self.navigator.grown()

    def _facts_of(
        self, whole: Recording, recording: Recording, run: int, engine: str, past: bool
    ) -> Facts:
        of_run = self._run_of(whole, run)
        engines = of_run.engines or {"": recording}
        made = {
            name: Facts(part, self._links_of((run, name)), self._run_of(self.recording, run))
            for name, part in engines.items()
        }
        for name, facts in made.items():
            facts.of_engines = made if engine else {}
            self._facts[run, name, past] = facts
        return made[engine]

    @staticmethod
    def _run_of(whole: Recording, run: int) -> Recording:
        return whole.runs.get(run, whole)

    def facts_of_run(self, run: int) -> Facts | None:
        """The facts of a whole run; None where the trace has no such run."""
        part = self.recording.runs.get(run)
        if part is None:
            return None
        if (run, "", False) not in self._facts:
            self._facts[run, "", False] = Facts(part, self._links_of((run, "")), self.recording)
        return self._facts[run, "", False]

    def _links_of(self, part: Part) -> Provenance:
        """Links of the whole part: what they lead to in the future is on no pane yet."""
        run, engine = part
        found = self._run_of(self.recording, run)
        found = found.engines.get(engine, found)
        links, fed = self._links.get(part) or (Provenance(), 0)
        links.feed(found.records[fed:])
        self._links[part] = links, len(found.records)
        return links

    def _state(self) -> chrome.State:
        if isinstance(self.feed, LiveFeed):
            return self._driven_state()
        end, failure = self.recording.end, self.recording.failure
        if end is None:
            self._followed = True
            growing = time.monotonic() - self._grew < PATIENCE
            return "running" if growing or self.feed.alive(self.recording.start) else "incomplete"
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
        if not self.feed.alive(None):
            return "incomplete"
        waiting = self.view.track.waiting(self.view.track.count)
        if waiting is None:
            return "running"
        if waiting.kind != "end":
            return "waiting"
        run = self._run_of(self.recording, self.view.track.run)
        return "finished" if run.failure is None else "failed"
