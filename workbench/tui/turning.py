"""Turns to another kernel, language, engine, run, order, filter or unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partialmethod
from typing import get_args

from tcw.compiler.trace.records import Run
from tcw.viewers.panes.arrangement import PROFILES
from tcw.viewers.panes.view import ShownTimes
from tcw.viewers.plain import plain
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.comparing import Comparing
from tcw.workbench.tui.desk import Controller

FOLLOWS = (
    "kernel", "fusion", "fusion-narrow", "causes", "profile", "region-eager", "region-compiled",
)  # fmt: skip
"""Panes that go to what `[ ]` chose."""

ORDERS = {
    "memory": ("", "size", "life"), "fusion": ("", "time"), "profile": ("", "line", "time"),
}  # fmt: skip
"""Arrangement -> the orders that its pane has."""


@dataclass(eq=False)
class Turning(Controller):
    """Shows another item in a pane, or the same item differently."""

    comparing: Comparing

    def _update(self, follows: Callable[[str], bool]) -> None:
        """Refill panes; those for which `follows` is true go to their start."""
        view = self.view
        for shown in self.desk.panes():
            shown.update(view.ref, view.lit, reset=follows(shown.pane))
        self.desk.refresh_all()

    def _kind(self, by: int) -> None:
        note = self.desk.navigator.step(by, self.desk.focus_name)
        self._update(FOLLOWS.__contains__)
        self.desk.say(note)

    next_kind = command("Go to the next of this kind", "right_square_bracket", shown="]")(
        partialmethod(_kind, 1)
    )
    previous_kind = command("Go to the previous of this kind", "left_square_bracket", shown="[")(
        partialmethod(_kind, -1)
    )

    def _language(self, by: int) -> None:
        focus, view = self.desk.focus_name, self.view
        if not self.desk.navigator.language(by, focus):
            only = "one graph" if focus == "graph" else "code in one language"
            self.desk.say(f"this recording has {only} here")
        for shown in self.desk.panes():
            if shown.pane == ("graph" if focus == "graph" else "kernel"):
                shown.update(view.ref, view.lit, reset=True)
        self.desk.refresh_all()

    next_language = command(
        "Show the next language or graph",
        "right_parenthesis",
        shown=")",
        also="triton ptx c++ sass",
    )(partialmethod(_language, 1))
    previous_language = command(
        "Show the previous language or graph", "left_parenthesis", shown="("
    )(partialmethod(_language, -1))

    @command("Order differently", "o")
    def order(self) -> None:
        orders = ORDERS.get(self.desk.navigator.arrangement)
        if orders is None:
            self.desk.say("this pane has one order")
            return
        view = self.view
        known = view.order if view.order in orders else ""
        view.order = orders[(orders.index(known) + 1) % len(orders)]
        self.desk.refresh_all()

    def _toggle(self, field: str) -> None:
        setattr(self.view, field, not getattr(self.view, field))
        self.desk.refresh_all()

    raw = command("Show kernels raw or tidied", "R")(partialmethod(_toggle, "raw"))
    torch_text = command("Show torch's own text", "U")(partialmethod(_toggle, "torch_text"))

    @command("Show other times next to the source: compiled, eager, Δ", "C")
    def times(self) -> None:
        if self.view.derived.profile is None:
            self.desk.say("no times: tcw profile measures them")
            return
        view, kinds = self.view, get_args(ShownTimes)
        view.times = kinds[(kinds.index(view.times) + 1) % len(kinds)]
        self.desk.refresh_all()
        self.desk.say({"difference": "compiled - eager"}.get(view.times, view.times))

    @command("Go to the profile", "V")
    async def profile(self) -> None:
        """Show the profile; if it is shown and has no data, have a driven compile make one."""
        view, navigator = self.view, self.desk.navigator
        if view.driven and view.derived.profile is None and navigator.arrangement in PROFILES:
            self.comparing.profile_again()
            return
        navigator.go("profile", self.desk.focus_name)
        await self.desk.rebuild()

    @command("Turn to the other engine or the next run", "T")
    async def engine(self) -> None:
        view = self.view
        engines = view.derived.of_engines
        runs = [number for _, number in view.track.runs]
        if len(runs) > 1:
            await self.turn_to_run(runs[(runs.index(view.run) + 1) % len(runs)])
            return
        if len(engines) < 2:
            self.desk.say("one engine was recorded: tcw explain --engine both records two")
            return
        names = list(engines)
        name = names[(names.index(view.engine) + 1) % len(names)]
        self.desk.navigator.engine(name, engines[name])
        self._update(lambda pane: True)
        self.desk.say(f"{name}, {names.index(name) + 1} of {len(names)} engines")

    async def turn_to_run(self, number: int) -> None:
        """Show another run in full."""
        view = self.view
        view.run, view.playhead = number, 0
        view.kernel = view.pair = view.variant = view.region = ""
        view.finding = view.site = view.cause = 0
        self.desk.reading.show_facts()
        run = next((r for r in self.desk.recording.all(Run) if r.number == number), None)
        await self.desk.rebuild()
        self.desk.say(f"run {number}  {plain(run.because) if run else ''}".rstrip())

    @command("Copy this row or its fix", "y")
    def copy(self) -> None:
        row = self.desk.focus_row
        if not row.key:
            return
        words = row.copies or row.text.strip()
        self.desk.app.copy_to_clipboard(words)
        shown = words.splitlines()[0] if words else ""
        self.desk.say(f"copied  {shown[:60]}")

    @command("Filter regions of the profile, or fusion decisions", "ampersand", shown="&")
    def filter(self) -> None:
        """Ask for a text that regions, or the nodes of pairs, must contain; an empty one shows
        all."""
        view = self.view
        regions = self.desk.navigator.arrangement in PROFILES

        def filtered(words: str) -> None:
            setattr(view, "region_filter" if regions else "pair_filter", words.strip())
            self.desk.refresh_all()

        if regions:
            self.desk.ask_words("only regions with", view.region_filter, filtered)
        else:
            self.desk.ask_words("only pairs of", view.pair_filter, filtered)

    # For the picture of a graph, which handles them itself while it has the focus

    def _only_in_picture(self) -> None:
        self.desk.say("this is for the picture of a graph: focus it first")

    larger = command("Draw a graph larger", "plus", "equals_sign", shown="+")(
        partialmethod(_only_in_picture)
    )
    smaller = command("Draw a graph smaller", "minus", shown="−")(partialmethod(_only_in_picture))
    weights = command("Show or hide the weights in a graph", "I")(partialmethod(_only_in_picture))
    unfold_all = command("Draw all of a graph, or fold it by module", "A")(
        partialmethod(_only_in_picture)
    )
