"""Breakpoints: set at the cursor or by kind, listed, switched, taken away."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from msgspec import structs

from tcw.compiler.protocol.commands import Breakpoint, SetBreakpoints
from tcw.compiler.trace.bounded import bytes_of
from tcw.viewers.panes import breakpoints as listed
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.driving import Driving
from tcw.workbench.tui.overlay import PaletteChoice


@dataclass(eq=False)
class Breaking(Controller):
    """Keeps the breakpoints of the view, and passes them to the worker."""

    driving: Driving

    def set_breakpoints(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        self.view.breakpoints = breakpoints
        if self.view.driven:
            self.driving.send(SetBreakpoints(breakpoints=breakpoints))
        self.desk.refresh_all()

    def add_breakpoint(self, made: Breakpoint) -> None:
        """Set it, or remove it if it is set."""
        now = self.view.breakpoints
        same = next((one for one in now if listed.same(one, made)), None)
        if same is not None:
            self.set_breakpoints(tuple(one for one in now if one is not same))
            self.desk.say(f"removed breakpoint {same.number}: {listed.words(same)}")
        else:
            self.set_breakpoints((*now, made))
            self.desk.say(f"breakpoint {made.number}: {listed.words(made)}")

    def next_number(self) -> int:
        return max((one.number for one in self.view.breakpoints), default=0) + 1

    @command("Break at the cursor, or choose where", "b")
    def breakpoint(self) -> None:
        made = listed.of_row(self.view, self.desk.focus_row, self.next_number())
        if made is not None:
            self.add_breakpoint(made)
            return
        self.desk.choose(self.choices(), "break at")

    def choices(self, key: str = "") -> list[PaletteChoice]:
        """Every kind of breakpoint; `key` is shown beside each."""
        return [
            PaletteChoice(words, partial(self.break_at, index), key)
            for index, (words, _) in enumerate(listed.KINDS)
        ]

    def break_at(self, index: int) -> None:
        """A kind of breakpoint by its place in the palette; some ask for a number or a name."""
        _, template = listed.KINDS[index]
        if template.number_name:
            self.desk.ask_words("break at decisions of at least", "1 MB", self._over_bytes)
        elif template.kind in ("op", "stage") and not (template.op or template.stage):
            self.desk.ask_words("break at op or node", "", self._at_op)
        else:
            self.add_breakpoint(structs.replace(template, number=self.next_number()))

    def _over_bytes(self, words: str) -> None:
        try:
            size = bytes_of(words)
        except ValueError:
            self.desk.say(f"{words}: it takes a number of bytes, such as 65536 or 1 MB")
            return
        number = self.next_number()
        name = listed.size_name(self.view)
        self.add_breakpoint(
            Breakpoint(number=number, kind="decision", number_name=name, at_least=size)
        )

    def _at_op(self, words: str) -> None:
        if words:
            self.add_breakpoint(Breakpoint(number=self.next_number(), kind="op", op=words))

    @command("List breakpoints", "B")
    async def breakpoints(self) -> None:
        await self.desk.show("breakpoints")

    def remove(self, number: int) -> None:
        self.set_breakpoints(tuple(b for b in self.view.breakpoints if b.number != number))

    def toggle(self, number: int) -> None:
        """Switch a breakpoint on or off."""
        again = self.next_number()
        found = []
        for one in self.view.breakpoints:
            if one.number == number:
                # one that was to stop once is spent, under its number
                spent = one.once and not one.enabled
                new = again if spent else number
                one = structs.replace(one, enabled=not one.enabled, number=new)
            found.append(one)
        self.set_breakpoints(tuple(found))
