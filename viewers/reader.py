"""One reader's way through a trace: by run and engine, whole or up to a place in it. No widget."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import AnyRecord, Decided, GraphBreak, Run, Waiting
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes.arrangement import arrangement_for
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tcw.viewers.timeline import Playhead, Track

Part = tuple[int, str]
"""(run, engine) of a trace; 0 and "" if it has only one."""


class Reader:
    """Takes the records of a trace and keeps what is derived from those shown."""

    def __init__(self, navigator: Navigator, recording: Recording) -> None:
        self.navigator = navigator
        self.recording = recording
        """The whole trace."""
        self.playhead = Playhead(self.recording)
        self._links: dict[Part, tuple[Provenance, int]] = {}
        """The links of a part, and the number of its records that were fed to them."""
        self._derived: dict[tuple[int, str, bool], Derived] = {}
        """By run and engine; True: up to the place to which the reader went back."""
        self._stood = 0
        """The number of records from which a place in the past was derived."""
        self.against: Derived | None = None
        """Another recording, the base of runs that have none in this trace."""
        self.view.track = Track()

    @property
    def view(self) -> View:
        return self.navigator.view

    def feed(self, records: Sequence[AnyRecord]) -> None:
        """Take records of the trace, in order."""
        before, grown = self.view.track.count, {self.view.track.run}
        self.recording.feed(records)
        self.view.track.feed(records)
        if self.view.track.changes(before, self.view.track.count):
            grown.add(self.view.track.run)
            self._derived = {
                key: kept for key, kept in self._derived.items() if key[2] or key[0] not in grown
            }

    def look_at_last_run(self, records: Sequence[AnyRecord]) -> None:
        """Turn to a run that began in these records."""
        if any(isinstance(record, Run) for record in records):
            self.view.run = self.view.track.run

    def go_to(self, position: int) -> None:
        """Show the trace as it was after its first `position` records; all of it at its end.
        Turn to the compile of the last of them, in the arrangement that shows it best."""
        view = self.view
        view.playhead = 0 if position == view.track.count else position
        view.run = view.track.run_at(position) or view.run
        self.show_facts()
        self.follow(self.recording.records[position - 1])

    def follow(self, record: AnyRecord) -> None:
        """Turn to the compile of a record, in the arrangement that shows it best."""
        view = self.view
        segment = view.track.segment_at(view.shown)
        compile_id = getattr(record, "compile_id", "") or compile_of(getattr(record, "graph", ""))
        self.navigator.compile(compile_id or (segment.compile_id if segment else ""))
        if isinstance(record, Waiting):
            self.navigator.arrangement = arrangement_for(view, record)
        elif isinstance(record, GraphBreak):
            view.site = max(0, len(view.summary.breaks) - 1)
        elif isinstance(record, Decided) and record.kind == "fuse":
            view.pair = record.id

    def part(self, whole: Recording) -> tuple[Part, Recording]:
        """The current run and engine, of the trace or of its beginning."""
        run = self.view.run if self.view.run in whole.runs else next(reversed(whole.runs), 0)
        recording = whole.runs.get(run, whole)
        engine = self.view.engine
        if recording.engines:
            engine = engine if engine in recording.engines else next(iter(recording.engines))
            return (run, engine), recording.engines[engine]
        return (run, ""), recording

    def show_facts(self) -> None:
        """Give the view what is derived from its run, engine and place in time."""
        view = self.view
        past = bool(view.playhead)
        whole = self.playhead.at(view.playhead) if past else self.recording
        (run, engine), recording = self.part(whole)
        if past and view.track.changes(self._stood, view.playhead):
            self._derived = {key: kept for key, kept in self._derived.items() if not key[2]}
        self._stood = view.playhead if past else self._stood
        view.run, view.engine = run, engine
        known = self._derived.get((run, engine, past))
        if known is None:
            known = self._derived_of(whole, recording, run, engine, past)
        known.recording, known.whole = recording, self._run_of(self.recording, run)
        known.trace = self.recording
        view.derived = known
        self._look_at_base()
        self.navigator.grown()

    def _look_at_base(self) -> None:
        """Give the view the base of its run."""
        runs = {run.number: run for run in self.recording.all(Run)}
        run = runs.get(self.view.run)
        base = self.derived_of_run(run.compared_with) if run is not None else None
        self.view.base = base or self.against

    def _derived_of(
        self, whole: Recording, recording: Recording, run: int, engine: str, past: bool
    ) -> Derived:
        of_run = self._run_of(whole, run)
        engines = of_run.engines or {"": recording}
        made = {
            name: Derived(part, self._links_of((run, name)), self._run_of(self.recording, run))
            for name, part in engines.items()
        }
        for name, derived in made.items():
            derived.of_engines = made if engine else {}
            self._derived[run, name, past] = derived
        return made[engine]

    @staticmethod
    def _run_of(whole: Recording, run: int) -> Recording:
        return whole.runs.get(run, whole)

    def derived_of_run(self, run: int) -> Derived | None:
        """What is derived from a whole run; None if the trace has no such run."""
        part = self.recording.runs.get(run)
        if part is None:
            return None
        if (run, "", False) not in self._derived:
            self._derived[run, "", False] = Derived(part, self._links_of((run, "")), self.recording)
        return self._derived[run, "", False]

    def _links_of(self, part: Part) -> Provenance:
        """Links of the whole part: no pane shows yet what they lead to in the future."""
        run, engine = part
        recording = self._run_of(self.recording, run)
        recording = recording.engines.get(engine, recording)
        links, fed = self._links.get(part) or (Provenance(), 0)
        links.feed(recording.records[fed:])
        self._links[part] = links, len(recording.records)
        return links


def whole(recording: Recording, base: Derived | None = None) -> Reader:
    """A reader of a complete trace. `base`: another recording to compare it with."""
    reader = Reader(
        Navigator(View(Derived(Recording(), Provenance()))), Recording(file=recording.file)
    )
    reader.against = base
    reader.recording.losses = recording.losses
    reader.feed(recording.records)
    reader.look_at_last_run(recording.records)
    reader.show_facts()
    return reader
