"""Moving in time: the playhead on the timeline. It only reads."""

from __future__ import annotations

from compiler.trace.records import AnyRecord, Asked, Decided, GraphBreak, Waiting
from viewers.panes import timeline
from viewers.panes.shown_when import arrangement_for
from viewers.words import number
from workbench.tui.edge import Edge
from workbench.tui.moving import Moving


class Scrubbing(Moving):
    """`< >` a record, `{ }` a stage, a click anywhere, `end` back to all of it."""

    def place(self) -> int:
        return timeline.place(self.view, self.navigator.arrangement)

    async def go_to(self, position: int) -> None:
        """Show the trace as it was after its first `position` records; all of it at its end."""
        view = self.view
        position = max(1, min(position, view.track.count))
        if not view.track.count:
            self.say("nothing is recorded yet")
            return
        view.playhead = 0 if position == view.track.count else position
        view.run = view.track.run_at(position) or view.run
        self.show_facts()
        record = self.recording.records[position - 1]
        self._follow(record)
        await self.rebuild()

    def _follow(self, record: AnyRecord) -> None:
        """Look at the compile of the record, and at what it is best seen in."""
        segment = self.view.track.segment_at(self.view.shown)
        compile_id = getattr(record, "compile_id", "") or _compile_of(getattr(record, "graph", ""))
        self.navigator.compile(compile_id or (segment.compile_id if segment else ""))
        if isinstance(record, Waiting):
            self.turn_to(arrangement_for(self.view, record))
        elif isinstance(record, GraphBreak):
            self.view.site = max(0, len(self.view.summary.breaks) - 1)
        elif isinstance(record, (Asked, Decided)) and record.kind == "fuse":
            self.view.pair = record.id

    def turn_to(self, arrangement: str) -> None:
        """Show an arrangement without making it a stop on the way back."""
        raise NotImplementedError

    async def do_later(self) -> None:
        await self.go_to(self.view.track.next_seen(self.place(), 1))

    async def do_earlier(self) -> None:
        await self.go_to(self.view.track.next_seen(self.place(), -1))

    async def do_next_stage(self) -> None:
        await self.go_to(self.view.track.next_stage(self.place(), 1))

    async def do_previous_stage(self) -> None:
        await self.go_to(self.view.track.next_stage(self.place(), -1))

    async def do_live(self) -> None:
        """Back to the whole of it."""
        view = self.view
        if not view.playhead:
            self.say("live" if view.driven else "all of the trace is shown")
            return
        view.playhead = 0
        view.run = view.track.run
        self.show_facts()
        waiting = view.waiting
        if waiting is not None:
            self._follow(waiting)
        await self.rebuild()
        self.say("" if view.driven else f"all {number(view.track.count)} records")

    async def on_edge_clicked(self, message: Edge.Clicked) -> None:
        if message.edge.id == "timeline":
            width, x = message.edge.size.width, message.x
            found = timeline.at(self.view, width, x, self.navigator.arrangement)
            if found:
                await self.go_to(found)


def _compile_of(graph: str) -> str:
    return "/".join(graph.split("/")[:2]) if graph else ""
