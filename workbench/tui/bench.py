"""The screen of the workbench: the commands that change what is shown, over regions and keys."""

from __future__ import annotations

from typing import get_args

from compiler.control.commands import Breakpoint
from compiler.trace.records import Run
from viewers.panes import breakpoints
from viewers.panes.arrangement import PROFILES
from viewers.panes.breakpoints import same
from viewers.panes.view import Times
from viewers.plain import plain
from workbench.tui import help as help_text
from workbench.tui.commands import COMMANDS, GOES
from workbench.tui.edge import Edge
from workbench.tui.live_feed import LiveFeed
from workbench.tui.overlay import Choice, Help, Palette
from workbench.tui.remembered import Placed, Remembered, recall, remember
from workbench.tui.revising import Revising
from workbench.tui.saving import Saving
from workbench.tui.theme import THEMES, ThemeName

FOLLOWS = (
    "kernel", "fusion", "fusion-narrow", "causes", "profile", "region-eager", "region-compiled",
)  # fmt: skip
"""Panes that go to the thing that `[ ]` chose."""

ORDERS = {
    "memory": ("", "size", "life"), "fusion": ("", "time"), "profile": ("", "line", "time"),
}  # fmt: skip
"""Arrangement -> the orders that its pane has."""


class Bench(Saving):
    """The workbench on one trace."""

    theme_chosen = False
    """By an option or the environment: the remembered one gives way."""
    _model = ""

    def _kind(self, by: int) -> None:
        pane = self.focus_pane()
        note = self.navigator.step(by, pane.pane if pane else "")
        for shown in self.panes():
            shown.update(self.view.ref, self.view.lit, reset=shown.pane in FOLLOWS)
        self.refresh_all()
        self.say(note)

    def do_next_kind(self) -> None:
        self._kind(1)

    def do_previous_kind(self) -> None:
        self._kind(-1)

    def _language(self, by: int) -> None:
        pane = self.focus_pane()
        name = pane.pane if pane else ""
        if not self.navigator.language(by, name):
            only = "one graph" if name == "graph" else "code in one language"
            self.say(f"this recording has {only} here")
        for shown in self.panes():
            if shown.pane == ("graph" if name == "graph" else "kernel"):
                shown.update(self.view.ref, self.view.lit, reset=True)
        self.refresh_all()

    def do_next_language(self) -> None:
        self._language(1)

    def do_previous_language(self) -> None:
        self._language(-1)

    async def do_engine(self) -> None:
        facts = self.view.facts.of_engines
        runs = [number for _, number in self.view.track.runs]
        if len(runs) > 1:
            await self.turn_to_run(runs[(runs.index(self.view.run) + 1) % len(runs)])
            return
        if len(facts) < 2:
            self.say("one engine was recorded: tcw explain --engine both records two")
            return
        names = list(facts)
        name = names[(names.index(self.view.engine) + 1) % len(names)]
        self.navigator.engine(name, facts[name])
        for shown in self.panes():
            shown.update(self.view.ref, self.view.lit, reset=True)
        self.refresh_all()
        self.say(f"{name}, {names.index(name) + 1} of {len(names)} engines")

    async def turn_to_run(self, number: int) -> None:
        """Look at another run, whole."""
        view = self.view
        view.run, view.playhead = number, 0
        view.kernel = view.pair = view.variant = view.region = ""
        view.finding = view.site = view.cause = 0
        self.show_facts()
        self._compare()
        run = next((r for r in self.recording.all(Run) if r.number == number), None)
        await self.rebuild()
        self.say(f"run {number}  {plain(run.because) if run else ''}".rstrip())

    def do_order(self) -> None:
        orders = ORDERS.get(self.navigator.arrangement)
        if orders is None:
            self.say("this pane has one order")
            return
        view = self.view
        known = view.order if view.order in orders else ""
        view.order = orders[(orders.index(known) + 1) % len(orders)]
        self.refresh_all()

    def do_filter(self) -> None:
        """Only some regions, or only pairs of some nodes; all again where nothing is asked for."""
        if self.navigator.arrangement in PROFILES:
            self.ask_words("only regions with", self.view.region_filter, self._filter_regions)
            return

        def chosen(words: str) -> None:
            self.view.pair_filter = words.strip()
            self.refresh_all()

        self.ask_words("only pairs of", self.view.pair_filter, chosen)

    def _filter_regions(self, words: str) -> None:
        self.view.region_filter = words.strip()
        self.refresh_all()

    async def do_profile(self) -> None:
        """Go to the profile; there, have a driven compile make one."""
        view = self.view
        if view.driven and view.facts.profile is None and self.navigator.arrangement in PROFILES:
            self.profile_again()
            return
        pane = self.focus_pane()
        self.navigator.go("profile", pane.pane if pane else "")
        await self.rebuild()

    def do_times(self) -> None:
        """Other times beside the source."""
        if self.view.facts.profile is None:
            self.say("no times: tcw profile measures them")
            return
        view, kinds = self.view, get_args(Times)
        view.times = kinds[(kinds.index(view.times) + 1) % len(kinds)]
        self.refresh_all()
        self.say({"difference": "compiled - eager"}.get(view.times, view.times))

    def do_raw(self) -> None:
        self.view.raw = not self.view.raw
        self.refresh_all()

    def do_torch_text(self) -> None:
        self.view.torch_text = not self.view.torch_text
        self.refresh_all()

    def do_copy(self) -> None:
        pane = self.focus_pane()
        if pane is None or not pane.row.key:
            return
        words = pane.row.copies or pane.row.text.strip()
        self.app.copy_to_clipboard(words)
        shown = words.splitlines()[0] if words else ""
        self.say(f"copied  {shown[:60]}")

    def do_help(self) -> None:
        pane = self.focus_pane()
        name = pane.content.name if pane else "tcw"
        self.app.push_screen(Help(self.look, help_text.lines(pane.pane if pane else "", name)))

    def do_palette(self) -> None:
        choices = [Choice(f"go:{name}", words) for name, words in GOES]
        choices += [Choice(f"do:{c.name}", c.words, c.shown) for c in COMMANDS]
        choices += [
            Choice(f"break:{index}", words, "b")
            for index, (words, _) in enumerate(breakpoints.KINDS)
        ]
        if len(self.view.track.runs) > 1:
            for run in self.recording.all(Run):
                said = f": {run.because}" if run.because else ""
                choices.append(Choice(f"run:{run.number}", f"Look at run {run.number}{said}"))
        choices += self.pane_choices()
        choices += [Choice(f"theme:{name}", f"Use the {name} theme") for name in THEMES]
        for piece in list(self.view.facts.pieces.values())[:500]:
            name = f"line {piece.resumes_at}" if piece.resumes_at else piece.function
            choices.append(
                Choice(f"compile:{piece.compile_id}", f"Look at {piece.compile_id} {name}")
            )

        async def chosen(answer: str | None) -> None:
            kind, _, rest = (answer or "").partition(":")
            if kind == "do":
                await self.command(rest)
            elif kind == "go":
                pane = self.focus_pane()
                self.navigator.go(rest, pane.pane if pane else "")
                await self.rebuild()
            elif kind == "here":
                await self.show_here(rest)
            elif kind == "beside":
                await self.show_beside(rest)
            elif kind == "break":
                self.break_at(int(rest))
            elif kind == "run":
                await self.turn_to_run(int(rest))
            elif kind == "compile":
                self.navigator.compile(rest)
                self.refresh_all()
            elif kind == "theme":
                self.theme_chosen = False
                await self.use_theme(rest)  # type: ignore[arg-type]

        self.app.push_screen(Palette(self.look, choices), chosen)

    async def use_theme(self, name: ThemeName) -> None:
        """Paint everything anew in another theme."""
        self.look = THEMES[name]
        self.styles.background = self.look.background
        for pane in self.panes():
            pane.theme = self.look
        self.spine.theme = self.entry.theme = self.look
        for edge in self.query(Edge):
            edge.theme = self.look
            edge.refresh()
        self.refresh_all()

    def handing_over(self, live: Revising) -> None:
        self._remember()
        assert isinstance(live, Bench)
        live.theme_chosen = True

    def do_quit(self) -> None:
        if self.may_leave():
            self._remember()
            self.app.exit(return_code=0)

    # What is remembered of the model's file

    async def opened(self) -> None:
        start = self.recording.start
        self._model = start.settings.file if start is not None else ""
        if not self._model:
            return
        found, trouble = recall(self._model)
        if trouble:
            self.say(plain(f"✗ panes and breakpoints are as for a new file: {trouble}"))
        self.own = {name: one.arrangement() for name, one in found.own.items()}
        self.stage.shares = found.shares
        self.turned = found.turned
        self.prefer.update(found.prefer)
        if found.breakpoints and self.view.driven:
            have = self.view.breakpoints
            new = [one for one in found.breakpoints if not any(same(one, h) for h in have)]
            first = self.next_number()
            numbered = (breakpoints.numbered(one, first + i) for i, one in enumerate(new))
            self.set_breakpoints((*have, *numbered))
        profiled = start is not None and start.settings.profile
        if profiled and not self.view.driven:
            at = found.arrangement
            self.navigator.arrangement = at if at in PROFILES else "profile"
            self.navigator.grown()
        elif found.arrangement not in ("", *PROFILES) and not self.view.driven:
            self.navigator.arrangement = found.arrangement
        if found.theme in THEMES and not self.theme_chosen:
            await self.use_theme(found.theme)

    def _own_breakpoints(self) -> tuple[Breakpoint, ...]:
        """Those that the reader set: what the command line asked for is for this time."""
        given = self.feed.breakpoints if isinstance(self.feed, LiveFeed) else ()
        own = (b for b in self.view.breakpoints if not any(same(b, one) for one in given))
        return tuple(own)

    def _remember(self) -> None:
        if not self._model:
            return
        before, _ = recall(self._model)
        state = Remembered(
            theme=before.theme if self.theme_chosen else self.look.name,
            arrangement=before.arrangement if self.view.driven else self.navigator.arrangement,
            turned=self.turned,
            own={name: Placed.of(one) for name, one in self.own.items()},
            shares=self.stage.shares,
            prefer=self.prefer,
            breakpoints=self._own_breakpoints() if self.view.driven else before.breakpoints,
        )
        remember(self._model, state)
