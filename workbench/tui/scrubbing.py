"""Moves the playhead over the timeline; the trace is only read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partialmethod

from tcw.viewers.panes import timeline
from tcw.viewers.words import number
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.reading import FeedReader


@dataclass(eq=False)
class Scrubbing(Controller):
    """`< >` move by a record, `{ }` by a stage, a click to any place, `end` back to now."""

    reading: FeedReader

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
        self.reading.go_to(position)
        await self.desk.rebuild()

    async def _record(self, by: int) -> None:
        await self.go_to(self.view.track.next_seen(self.place(), by))

    async def _stage(self, by: int) -> None:
        await self.go_to(self.view.track.next_stage(self.place(), by))

    later = command("Go one record forward in time", "greater_than_sign", shown=">")(
        partialmethod(_record, 1)
    )
    earlier = command("Go one record back in time", "less_than_sign", shown="<")(
        partialmethod(_record, -1)
    )
    next_stage = command("Go one stage forward in time", "right_curly_bracket", shown="}")(
        partialmethod(_stage, 1)
    )
    previous_stage = command("Go one stage back in time", "left_curly_bracket", shown="{")(
        partialmethod(_stage, -1)
    )

    @command("Go back to now", "end", "full_stop")
    async def live(self) -> None:
        """Show the whole trace."""
        view = self.view
        if not view.playhead:
            self.desk.say("live" if view.driven else "all of the trace is shown")
            return
        view.playhead = 0
        view.run = view.track.run
        self.reading.show_facts()
        waiting = view.waiting
        if waiting is not None:
            self.reading.follow(waiting)
        await self.desk.rebuild()
        self.desk.say("" if view.driven else f"all {number(view.track.count)} records")

    async def clicked(self, width: int, x: int) -> None:
        """A cell of the timeline was clicked."""
        found = timeline.at(self.view, width, x, self.desk.navigator.arrangement)
        if found:
            await self.go_to(found)
