"""Drives a compile: steps, runs to the cursor, stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partialmethod

from msgspec import structs

from tcw.compiler.protocol.commands import AnyCommand, Breakpoint, Go, Mode, Pause, Stop
from tcw.compiler.protocol.stops import Stops
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, Resumed, Waiting
from tcw.compiler.trace.refs import Ref
from tcw.viewers.panes import timeline
from tcw.viewers.panes.arrangement import arrangement_for
from tcw.viewers.panes.breakpoints import of_row
from tcw.viewers.plain import plain
from tcw.viewers.words import number
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.feed import LiveFeed


class Scrubbing(Controller):
    """`< >` move by a record, `{ }` by a stage, a click to any place, `end` back to now."""

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
        self.desk.reading.go_to(position)
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
        self.desk.reading.show_facts()
        waiting = view.waiting
        if waiting is not None:
            self.desk.reading.follow(waiting)
        await self.desk.rebuild()
        self.desk.say("" if view.driven else f"all {number(view.track.count)} records")

    async def clicked(self, width: int, x: int) -> None:
        """A cell of the timeline was clicked."""
        found = timeline.at(self.view, width, x, self.desk.navigator.arrangement)
        if found:
            await self.go_to(found)


_AT_DECISION: dict[Mode, Mode] = {"instruction": "any-decision", "over": "stage", "out": "graph"}
_AT_STAGE: dict[Mode, Mode] = {"instruction": "stage", "over": "stage", "out": "graph"}
_AT: dict[str, dict[Mode, Mode]] = {
    "decision": _AT_DECISION,
    "stage": _AT_STAGE,
    "pass": {"instruction": "pass", "over": "stage", "out": "graph"},
    "graph": {"instruction": "graph", "over": "graph", "out": "graph"},
}
"""What the step keys mean where the compile is not at an instruction."""


@dataclass(eq=False)
class Driving(Controller):
    """Keys that send commands to the worker; in a replay the same keys move the playhead."""

    scrubbing: Scrubbing
    prefer: dict[str, str] = field(default_factory=dict)
    """Kind of place -> the arrangement that the reader chose for it."""
    belonged: str = ""
    """The arrangement that belongs to the place where the compile is."""
    brings: Ref = ""
    """What the compile has just reached; every pane puts its cursor there."""
    _left: str = ""
    """The kind of place where the compile last waited."""
    _stopped: bool = False
    _stops: Stops | None = None
    """The stops of the replay's first `_replayed` records."""
    _replayed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.desk.feed, LiveFeed):
            self.view.breakpoints = tuple(self.desk.feed.breakpoints)

    # The worker

    def send(self, command: AnyCommand) -> bool:
        """Send a command to the worker; False, with a message, if there is none."""
        feed = self.desk.feed
        if not isinstance(feed, LiveFeed):
            self.desk.say("a recorded trace: tcw step drives a live compile")
        elif feed.ended or self.desk.recording.end is not None:
            self.desk.say("the worker has ended; its recording is kept")
        else:
            feed.send(command)
            return True
        return False

    def arrived(self, records: list[AnyRecord]) -> None:
        """Follow the compile, which may have stopped or gone on."""
        met = {record.breakpoint for record in records if isinstance(record, Waiting)}
        self.view.breakpoints = tuple(
            structs.replace(one, enabled=False) if one.once and one.number in met else one
            for one in self.view.breakpoints
        )
        if self.view.playhead or self.view.run != self.view.track.run:
            return
        waiting = self.view.waiting
        if waiting is not None and any(isinstance(record, Waiting) for record in records):
            self._stand(waiting)
        elif any(isinstance(record, Resumed) for record in records):
            self.desk.note = ""

    def _stand(self, waiting: Waiting) -> None:
        """Show the arrangement of this kind of place, or the one that the reader prefers there."""
        arrangement, kind = self.desk.navigator.arrangement, _kind(waiting)
        if self._left and arrangement != self.belonged:
            self.prefer[self._left] = arrangement
        if not self.desk.note.startswith("✗"):
            self.desk.note = ""
        self.belonged = self.prefer.get(kind) or arrangement_for(self.view, waiting)
        self._left = kind
        if waiting.compile_id:
            self.desk.navigator.compile(waiting.compile_id)
        if waiting.decision and self.belonged == "decision":
            self._light()
        elif waiting.location is not None and self.belonged != "fusion":
            self.view.select(refs.source(waiting.location.file, waiting.location.line))
            self.brings = self.view.ref
        if waiting.decision:
            self.view.pair = waiting.decision
            if self.belonged == "fusion":
                self.desk.navigator.light_pair()
                lit = self.view.lit
                self.brings = next((ref for ref in lit if refs.kind(ref) == "src"), "")
        if waiting.kind == "event":
            self._look_at_event(waiting)
        self.desk.navigator.arrangement = self.belonged

    def _look_at_event(self, waiting: Waiting) -> None:
        """Make the panes of breaks and recompiles show the one where the compile waits."""
        view, place = self.view, waiting.location
        here = refs.source(place.file, place.line) if place is not None else ""
        sites = [
            number for number, site in enumerate(view.summary.breaks) if site.place.ref == here
        ]
        view.site = sites[-1] if sites else view.site
        view.cause = max(0, len(view.summary.recompiles) - 1)

    def _light(self) -> None:
        """Select the node that a decision is about."""
        asked = self.view.asked
        if asked is not None and asked.shown.origins:
            graphs = (f"{asked.graph}/lowered", asked.graph)
            known = self.view.recording.graphs
            graph = next((name for name in graphs if name in known), graphs[0])
            self.view.select(refs.node(graph, asked.shown.origins[0]))
            self.brings = self.view.ref

    # Steps

    async def _go(self, mode: Mode, until: Breakpoint | None = None) -> None:
        view = self.view
        if view.playhead or not view.driven:
            await self._replay(mode, until)
            return
        waiting = view.waiting
        if waiting is None:
            self.desk.say("the compile is running: i pauses it, ctrl-c ends it")
        elif waiting.kind == "end":
            self.desk.say("the run is over: w compiles again with the overrides, q quits")
        else:
            kind = "decision" if waiting.decision else waiting.kind
            self.send(Go(mode=_AT.get(kind, {}).get(mode, mode), until=until))

    async def _replay(self, mode: Mode, until: Breakpoint | None) -> None:
        """Move the playhead to where the compile would have stopped in this mode."""
        place = self.scrubbing.place()
        if self._stops is None or self._replayed != place:
            self._stops = Stops(self.view.breakpoints)
            for record in self.desk.recording.records[:place]:
                self._stops.after(record)
        stops, records = self._stops, self.desk.recording.records
        stops.set_breakpoints(self.view.breakpoints)
        stops.go(mode, until)
        for index in range(place, len(records)):
            stop = stops.after(records[index])
            if stop is not None:
                self._replayed = index + 1
                await self.scrubbing.go_to(index + 1)
                self.desk.say(plain(stop.why))
                return
        self._stops = None
        await self.scrubbing.go_to(len(records))
        self.desk.say("the end of the trace: < goes back")

    step = command("Step to the next instruction, decision or stage", "s")(
        partialmethod(_go, "instruction")
    )
    over = command("Step over what is called", "S")(partialmethod(_go, "over"))
    out = command("Step out of the function", "F")(partialmethod(_go, "out"))
    line = command("Step to the next line", "L")(partialmethod(_go, "line"))
    continue_ = command("Continue to the next breakpoint", "c")(partialmethod(_go, "continue"))
    next_frame = command("Run to the next frame")(partialmethod(_go, "frame"))
    next_graph = command("Run to the next graph", "H")(partialmethod(_go, "graph"))
    next_pass = command("Run to the next pass", "P")(partialmethod(_go, "pass"))
    next_decision = command("Run to the next decision that matters", "d")(
        partialmethod(_go, "decision")
    )
    next_fusion = command("Run to the next fusion decision")(partialmethod(_go, "fusion"))
    any_decision = command("Run to the next decision of any kind")(
        partialmethod(_go, "any-decision")
    )
    stage = command("Run to the next stage", "t")(partialmethod(_go, "stage"))

    @command("Run to the cursor", "r")
    async def to_cursor(self) -> None:
        until = of_row(self.view, self.desk.focus_row, 0)
        if until is None:
            self.desk.say("no line, node or decision is under the cursor")
        else:
            await self._go("cursor", until)

    @command("Interrupt: wait at the next place", "i")
    def pause(self) -> None:
        if self.view.driven and self.view.waiting is not None:
            self.desk.say("it is waiting already")
        elif self.send(Pause()):
            self.desk.say("it will wait at the next place where it can")

    def stop(self) -> bool:
        """End the recording; False if it has ended, or none is driven."""
        running = self.view.driven and self.desk.recording.end is None
        if not running or self._stopped or not self.send(Stop()):
            return False
        self._stopped = True
        self.desk.say("the recording ends; ctrl-c again quits")
        return True


def _kind(waiting: Waiting) -> str:
    return f"decision {waiting.decision.split('/')[-2]}" if waiting.decision else waiting.kind
