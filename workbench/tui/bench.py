"""The screen of the workbench: the commands that change what is shown, over regions and keys."""

from __future__ import annotations

from workbench.tui import help as help_text
from workbench.tui.commands import COMMANDS, GOES
from workbench.tui.edge import Edge
from workbench.tui.moving import Moving
from workbench.tui.overlay import Choice, Help, Palette
from workbench.tui.theme import THEMES, ThemeName

FOLLOWS = ("kernel", "fusion", "fusion-narrow", "causes")
"""Panes that go to the thing that `[ ]` chose."""

ORDERS = {"memory": ("", "size", "life"), "fusion": ("", "time")}
"""Arrangement -> the orders that its pane has."""


class Bench(Moving):
    """The workbench on one trace."""

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

    def do_order(self) -> None:
        orders = ORDERS.get(self.navigator.arrangement)
        if orders is None:
            self.say("this pane has one order")
            return
        view = self.view
        known = view.order if view.order in orders else ""
        view.order = orders[(orders.index(known) + 1) % len(orders)]
        self.refresh_all()

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
            elif kind == "compile":
                self.navigator.compile(rest)
                self.refresh_all()
            elif kind == "theme":
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
        self.refresh_all()

    def do_quit(self) -> None:
        self.app.exit(return_code=0)
