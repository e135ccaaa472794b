"""Notes on what is selected, kept in the trace."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from tcw.compiler.trace.records import Note
from tcw.viewers.kit.theme import Theme
from tcw.viewers.panes.notes import known, thing_of, thing_words
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.targets import ToNote
from tcw.viewers.plain import plain, plain_lines
from tcw.viewers.teaching.notes import DECISION, LONGEST, append, make, on_decision
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.feed import Delivered, LiveFeed
from tcw.workbench.tui.overlay import Sheet


class Writing(ModalScreen[str | None]):
    """Asks for several lines of text; None if the reader cancels."""

    DEFAULT_CSS = """
    Writing { align: center middle; background: $background 0%; }
    Writing Vertical { width: 72; max-width: 95%; height: 14; max-height: 90%; }
    Writing TextArea, Writing TextArea:focus { height: 1fr; border: none; padding: 0 1; }
    """

    def __init__(self, theme: Theme, title: str, words: str) -> None:
        super().__init__()
        self.theme = theme
        self.title_words = plain(title)
        self.words = words

    def compose(self) -> ComposeResult:
        width = min(72, max(20, self.app.size.width * 95 // 100))
        self.head = Sheet(self.theme, width, 1)
        self.area = TextArea("\n".join(plain_lines(self.words)), soft_wrap=True)
        foot = Sheet(self.theme, width, 1)
        keys = (" ctrl-s ", "key"), ("save  ", "dim"), ("esc ", "key"), ("give up  ", "dim")
        foot.rows = [(Row(body=(*keys, ("empty: delete", "dim"))), "title")]  # type: ignore[arg-type]
        with Vertical():
            yield self.head
            yield self.area
            yield foot

    def on_mount(self) -> None:
        self.area.styles.background = self.theme.background
        self.area.focus()
        self._count()

    def on_text_area_changed(self) -> None:
        self._count()

    def _count(self) -> None:
        size = len(self.area.text)
        over = size > LONGEST
        words = f"{size - LONGEST:,} too many " if over else f"{size:,} of {LONGEST:,} "
        title = (f' " {self.title_words}', "title")
        right = (words, "warn" if over else "dim")
        self.head.rows = [(Row(body=(title,), right=(right,)), "title")]  # type: ignore[arg-type]
        self.head.refresh()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.dismiss(None)
        elif event.key == "ctrl+s":
            event.stop()
            self.dismiss(self.area.text)


class Noting(Controller):
    """`m` writes, edits and deletes the note on what is selected."""

    def _thing(self) -> str:
        """The row under the cursor, else the selection."""
        row = self.desk.focus_row
        if isinstance(row.at, ToNote):
            return row.at.on
        asked = self.view.asked
        return thing_of(row) or self.view.ref or (on_decision(asked.id) if asked else "")

    @command("Write, edit or delete a note on what is selected", "m")
    def note(self) -> None:
        on = self._thing()
        if not on:
            self.desk.say("a note goes on a line, a node, a kernel or a decision: select one")
            return
        before = known(self.view).get(on)

        def written(words: str | None) -> None:
            if words is not None and words.strip() != (before.text if before else ""):
                self.keep_note(on, words)

        title = thing_words(self.view, on)
        self.desk.app.push_screen(
            Writing(self.desk.look, title, before.text if before else ""), written
        )

    def keep_note(self, on: str, words: str) -> None:
        """Write the note to the trace; an empty one removes it."""
        records = self.desk.recording.records
        run = self.view.run if on.startswith(DECISION) else 0
        note = make(on, words, run, records[-1].at if records else 0.0)
        if isinstance(self.desk.feed, LiveFeed) and not self.desk.feed.ended:
            self.desk.feed.note(note)
        elif not self._append(note):
            return
        else:
            self.desk.post_message(Delivered([note]))
        where = thing_words(self.view, on)
        self.desk.say(plain(f"note on {where}" if note.text else f"removed the note on {where}"))

    def _append(self, note: Note) -> bool:
        path = self.desk.feed.file
        if path is None:
            self.desk.say("no trace is kept: --trace FILE keeps one")
            return False
        try:
            append(path, note)
        except OSError as error:
            self.desk.say(plain(f"the note is not kept: {path}: {error.strerror or error}"))
            return False
        return True

    @command("List notes")
    async def notes(self) -> None:
        await self.desk.show("notes")
