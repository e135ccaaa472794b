"""Driving a compile: steps, runs to the cursor, breakpoints, the stop."""

from __future__ import annotations

import contextlib

from compiler.control.commands import AnyCommand, Breakpoint, Go, Mode, Pause, SetBreakpoints, Stop
from compiler.control.stops import Stops
from compiler.trace import refs
from compiler.trace.records import AnyRecord, Resumed, Waiting
from viewers.panes import breakpoints as listed
from viewers.panes.rows import Row
from viewers.panes.shown_when import arrangement_for
from viewers.plain import plain
from workbench.tui.live_feed import LiveFeed
from workbench.tui.overlay import Choice, Palette
from workbench.tui.pane import PaneView
from workbench.tui.scrubbing import Scrubbing

_AT_DECISION: dict[Mode, Mode] = {"instruction": "any-decision", "over": "stage", "out": "graph"}
_AT_STAGE: dict[Mode, Mode] = {"instruction": "stage", "over": "stage", "out": "graph"}
_AT: dict[str, dict[Mode, Mode]] = {
    "decision": _AT_DECISION,
    "stage": _AT_STAGE,
    "pass": {"instruction": "pass", "over": "stage", "out": "graph"},
    "graph": {"instruction": "graph", "over": "graph", "out": "graph"},
}
"""What the step keys mean where the compile does not stand at an instruction."""


class Driving(Scrubbing):
    """Keys that send commands to the worker; in a replay the same keys move the playhead."""

    _left = ""
    """What kind of place the compile stood at last, and which arrangement belonged to it."""
    _belonged = ""
    _stopped = False

    @property
    def prefer(self) -> dict[str, str]:
        """Kind of place -> the arrangement that the reader chose for it."""
        return self._prefer

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._prefer: dict[str, str] = {}
        if isinstance(self.feed, LiveFeed):
            self.view.breakpoints = tuple(self.feed.breakpoints)
        self._stops: Stops | None = None
        """What a replay has seen, up to …"""
        self._replayed = 0

    # The worker

    def send(self, command: AnyCommand) -> bool:
        """Pass a command to the worker; says so where there is none."""
        feed = self.feed
        if not isinstance(feed, LiveFeed):
            self.say("a recorded trace: tcw step drives a live compile")
        elif feed.ended or self.recording.end is not None:
            self.say("the worker has ended: what it recorded stays")
        else:
            feed.send(command)
            return True
        return False

    async def arrived(self, records: list[AnyRecord]) -> None:
        await super().arrived(records)
        met = {record.breakpoint for record in records if isinstance(record, Waiting)}
        self.view.breakpoints = tuple(
            listed.switched(one) if one.once and one.enabled and one.number in met else one
            for one in self.view.breakpoints
        )
        if self.view.playhead or self.view.run != self.view.track.run:
            return
        waiting = self.view.waiting
        if waiting is not None and any(isinstance(record, Waiting) for record in records):
            self._stand(waiting)
        elif any(isinstance(record, Resumed) for record in records):
            self.note = ""

    def _stand(self, waiting: Waiting) -> None:
        """Show what belongs to the place; the reader's own choice for such a place wins."""
        arrangement, kind = self.navigator.arrangement, _kind(waiting)
        if self._left and arrangement != self._belonged:
            self._prefer[self._left] = arrangement
        if not self.note.startswith("✗"):
            self.note = ""
        self._belonged = self._prefer.get(kind) or arrangement_for(self.view, waiting)
        self._left = kind
        if waiting.compile_id:
            self.navigator.compile(waiting.compile_id)
        if waiting.decision and self._belonged == "decision":
            self._light(waiting)
        elif waiting.location is not None and self._belonged != "fusion":
            self.view.select(refs.source(waiting.location.file, waiting.location.line))
            self.brings = self.view.ref
        if waiting.decision:
            self.view.pair = waiting.decision
        if waiting.kind == "event":
            self._look_at_event(waiting)
        self.turn_to(self._belonged)

    def _look_at_event(self, waiting: Waiting) -> None:
        """Have the panes of breaks and recompiles speak of the one that it waits at."""
        view, place = self.view, waiting.location
        here = refs.source(place.file, place.line) if place is not None else ""
        sites = [number for number, one in enumerate(view.summary.breaks) if one.place.ref == here]
        view.site = sites[-1] if sites else view.site
        view.cause = max(0, len(view.summary.recompiles) - 1)

    def _light(self, waiting: Waiting) -> None:
        """Select the node that a decision is about."""
        asked = self.view.asked
        if asked is not None and asked.origins:
            graphs = (f"{asked.graph}/lowered", asked.graph)
            known = self.view.recording.graphs
            graph = next((name for name in graphs if name in known), graphs[0])
            self.view.select(refs.node(graph, asked.origins[0]))
            self.brings = self.view.ref

    def turn_to(self, arrangement: str) -> None:
        self.navigator.arrangement = arrangement

    # Steps

    async def _go(self, mode: Mode, until: Breakpoint | None = None) -> None:
        view = self.view
        if view.playhead or not view.driven:
            await self._replay(mode, until)
            return
        waiting = view.waiting
        if waiting is None:
            self.say("the compile is running: i pauses it, ctrl-c ends it")
        elif waiting.kind == "end":
            self.say("the run is over: w compiles again with the overrides, q quits")
        else:
            kind = "decision" if waiting.decision else waiting.kind
            self.send(Go(mode=_AT.get(kind, {}).get(mode, mode), until=until))

    async def _replay(self, mode: Mode, until: Breakpoint | None) -> None:
        """Move the playhead to where the compile would have stopped, had it been told to go so."""
        place = self.place()
        if self._stops is None or self._replayed != place:
            self._stops = Stops(self.view.breakpoints)
            for record in self.recording.records[:place]:
                self._stops.after(record)
        stops, records = self._stops, self.recording.records
        stops.set_breakpoints(self.view.breakpoints)
        stops.go(mode, until)
        for index in range(place, len(records)):
            stop = stops.after(records[index])
            if stop is not None:
                self._replayed = index + 1
                await self.go_to(index + 1)
                self.say(plain(stop.why))
                return
        self._stops = None
        await self.go_to(len(records))
        self.say("the end of the trace: < goes back")

    async def do_step(self) -> None:
        await self._go("instruction")

    async def do_over(self) -> None:
        await self._go("over")

    async def do_out(self) -> None:
        await self._go("out")

    async def do_line(self) -> None:
        await self._go("line")

    async def do_continue(self) -> None:
        await self._go("continue")

    async def do_next_frame(self) -> None:
        await self._go("frame")

    async def do_next_graph(self) -> None:
        await self._go("graph")

    async def do_next_pass(self) -> None:
        await self._go("pass")

    async def do_next_decision(self) -> None:
        await self._go("decision")

    async def do_next_fusion(self) -> None:
        await self._go("fusion")

    async def do_any_decision(self) -> None:
        await self._go("any-decision")

    async def do_stage(self) -> None:
        await self._go("stage")

    async def do_to_cursor(self) -> None:
        pane = self.focus_pane()
        until = listed.of_row(self.view, pane.row, 0) if pane is not None else None
        if until is None:
            self.say("no line, node or decision is under the cursor")
        else:
            await self._go("cursor", until)

    def do_pause(self) -> None:
        if self.view.driven and self.view.waiting is not None:
            self.say("it is waiting already")
        elif self.send(Pause()):
            self.say("it will wait at the next place where it can")

    async def do_stop(self) -> None:
        """The first time the recording ends, the second time the tool."""
        running = self.view.driven and self.recording.end is None
        if running and not self._stopped and self.send(Stop()):
            self._stopped = True
            self.say("the recording ends; ctrl-c again quits")
        else:
            await self.command("quit")

    # Breakpoints

    def set_breakpoints(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        self.view.breakpoints = breakpoints
        if self.view.driven:
            self.send(SetBreakpoints(breakpoints=breakpoints))
        self.refresh_all()

    def add_breakpoint(self, made: Breakpoint) -> None:
        """Set it; one that stands already is taken away."""
        now = self.view.breakpoints
        same = next((one for one in now if listed.same(one, made)), None)
        if same is not None:
            self.set_breakpoints(tuple(one for one in now if one is not same))
            self.say(f"removed breakpoint {same.number}: {listed.words(same)}")
        else:
            self.set_breakpoints((*now, made))
            self.say(f"breakpoint {made.number}: {listed.words(made)}")

    def next_number(self) -> int:
        return max((one.number for one in self.view.breakpoints), default=0) + 1

    def do_breakpoint(self) -> None:
        pane = self.focus_pane()
        row = pane.row if pane is not None else Row()
        made = listed.of_row(self.view, row, self.next_number())
        if made is not None:
            self.add_breakpoint(made)
            return
        choices = [Choice(f"break:{i}", words) for i, (words, _) in enumerate(listed.KINDS)]

        def chosen(answer: str | None) -> None:
            if answer:
                self.break_at(int(answer.removeprefix("break:")))

        self.app.push_screen(Palette(self.look, choices, "break at"), chosen)

    def break_at(self, index: int) -> None:
        """A kind of breakpoint by its place in the palette; some ask for a number or a name."""
        _, template = listed.KINDS[index]
        made = listed.numbered(template, self.next_number())
        if template.number_name:
            self.ask_words("break at decisions of at least", "1 MB", self._over_bytes)
        elif template.kind in ("op", "stage") and not (template.op or template.stage):
            self.ask_words("break at op or node", "", self._at_op)
        else:
            self.add_breakpoint(made)

    def _over_bytes(self, words: str) -> None:
        size = listed.bytes_of(words)
        if size is None:
            self.say(f"{words}: it takes a number of bytes, such as 65536 or 1 MB")
            return
        number = self.next_number()
        name = listed.size_name(self.view)
        self.add_breakpoint(
            Breakpoint(number=number, kind="decision", number_name=name, at_least=size)
        )

    def _at_op(self, words: str) -> None:
        if words:
            self.add_breakpoint(Breakpoint(number=self.next_number(), kind="op", op=words))

    async def do_breakpoints(self) -> None:
        await self.show("breakpoints")

    async def do_delete(self) -> None:
        """Take away what the cursor of a list stands on."""
        pane = self.focus_pane()
        kind, _, rest = (pane.row.key if pane is not None else "").partition(":")
        if kind == "breakpoint":
            number = int(rest)
            self.set_breakpoints(tuple(b for b in self.view.breakpoints if b.number != number))
        elif kind == "override":
            self.forget_override(rest)
        else:
            self.say("d deletes breakpoints and overrides, in their lists: B and O")

    def choose_setting(self, key: str) -> None:
        raise NotImplementedError

    def try_suggestion(self, key: str) -> None:
        raise NotImplementedError

    def forget_override(self, id: str) -> None:
        raise NotImplementedError

    async def _open(self, pane: PaneView) -> None:
        kind, _, rest = pane.row.opens.partition(":")
        if kind == "breakpoint":
            self.toggle(int(rest))
        elif kind == "setting":
            self.choose_setting(rest)
        elif kind == "suggestion":
            self.try_suggestion(rest)
        else:
            await super()._open(pane)

    def toggle(self, number: int) -> None:
        """Switch a breakpoint on or off."""
        again = self.next_number()
        found = []
        for one in self.view.breakpoints:
            changed = listed.switched(one) if one.number == number else one
            # one that was to stop once is spent, under its number
            spent = changed is not one and changed.once and changed.enabled
            found.append(listed.numbered(changed, again) if spent else changed)
        self.set_breakpoints(tuple(found))

    async def show(self, arrangement: str) -> None:
        """Go to an arrangement; again, back."""
        if self.navigator.arrangement == arrangement:
            with contextlib.suppress(IndexError):
                self.navigator.back()
        else:
            pane = self.focus_pane()
            self.navigator.go(arrangement, pane.pane if pane else "")
        await self.rebuild()


def _kind(waiting: Waiting) -> str:
    return f"decision {waiting.decision.split('/')[-2]}" if waiting.decision else waiting.kind
