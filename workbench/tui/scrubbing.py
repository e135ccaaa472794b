"""Moving in time: the playhead on the timeline. It only reads."""

from __future__ import annotations

from compiler.trace.records import AnyRecord, Asked, Decided, GraphBreak, Waiting
from viewers.panes import timeline
from viewers.panes.shown_when import arrangement_for
from viewers.panes.view import View
from viewers.words import number
from workbench.tui.commands import command
from workbench.tui.desk import Desk
from workbench.tui.reading import Reading


class Scrubbing:
    """`< >` a record, `{ }` a stage, a click anywhere, `end` back to all of it."""

    def __init__(self, desk: Desk, reading: Reading) -> None:
        self.desk = desk
        self.reading = reading

    @property
    def view(self) -> View:
        return self.desk.view

    def place(self) -> int:
        """How many records are shown."""
        return timeline.place(self.view, self.desk.navigator.arrangement)

    async def go_to(self, position: int) -> None:
        """Show the trace as it was after its first `position` records; all of it at its end."""
        view = self.view
        position = max(1, min(position, view.track.count))
        if not view.track.count:
            self.desk.say("nothing is recorded yet")
            return
        view.playhead = 0 if position == view.track.count else position
        view.run = view.track.run_at(position) or view.run
        self.reading.show_facts()
        record = self.reading.recording.records[position - 1]
        self._follow(record)
        await self.desk.rebuild()

    def _follow(self, record: AnyRecord) -> None:
        """Look at the compile of the record, and at what it is best seen in."""
        segment = self.view.track.segment_at(self.view.shown)
        compile_id = getattr(record, "compile_id", "") or _compile_of(getattr(record, "graph", ""))
        self.desk.navigator.compile(compile_id or (segment.compile_id if segment else ""))
        if isinstance(record, Waiting):
            self.desk.navigator.arrangement = arrangement_for(self.view, record)
        elif isinstance(record, GraphBreak):
            self.view.site = max(0, len(self.view.summary.breaks) - 1)
        elif isinstance(record, (Asked, Decided)) and record.kind == "fuse":
            self.view.pair = record.id

    @command("Go one record forward in time", "greater_than_sign", shown=">")
    async def later(self) -> None:
        await self.go_to(self.view.track.next_seen(self.place(), 1))

    @command("Go one record back in time", "less_than_sign", shown="<")
    async def earlier(self) -> None:
        await self.go_to(self.view.track.next_seen(self.place(), -1))

    @command("Go one stage forward in time", "right_curly_bracket", shown="}")
    async def next_stage(self) -> None:
        await self.go_to(self.view.track.next_stage(self.place(), 1))

    @command("Go one stage back in time", "left_curly_bracket", shown="{")
    async def previous_stage(self) -> None:
        await self.go_to(self.view.track.next_stage(self.place(), -1))

    @command("Go back to now", "end", "full_stop")
    async def live(self) -> None:
        """Back to the whole of it."""
        view = self.view
        if not view.playhead:
            self.desk.say("live" if view.driven else "all of the trace is shown")
            return
        view.playhead = 0
        view.run = view.track.run
        self.reading.show_facts()
        waiting = view.waiting
        if waiting is not None:
            self._follow(waiting)
        await self.desk.rebuild()
        self.desk.say("" if view.driven else f"all {number(view.track.count)} records")

    async def clicked(self, width: int, x: int) -> None:
        """A cell of the timeline was clicked."""
        found = timeline.at(self.view, width, x, self.desk.navigator.arrangement)
        if found:
            await self.go_to(found)


def _compile_of(graph: str) -> str:
    return "/".join(graph.split("/")[:2]) if graph else ""
