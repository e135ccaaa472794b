"""Exports the screen as SVG, and the shown graph as SVG, PNG or DOT."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from tcw.compiler.trace.output_file import check, safe_name, write
from tcw.compiler.trace.output_file import words as why
from tcw.viewers.drawing.export import FORMATS, ExportError, suggested
from tcw.viewers.drawing.export import export as export_graph
from tcw.viewers.plain import plain
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.picture import picture as drawn


class Saving(Controller):
    """`x` exports the graph, or the screen, to a file that the reader names."""

    @command("Export the graph, or save a picture of the screen", "x", also="svg png dot")
    def export(self) -> None:
        pane = self.desk.focus_pane()
        if pane is not None and pane.pane == "picture":
            words = f"export the graph as {', '.join(FORMATS)} to"
            self.desk.ask_words(words, suggested(self.view), self._export)
        else:
            self.picture()

    @command("Save a picture of the screen", also="screenshot svg")
    def picture(self) -> None:
        stem = safe_name(Path(self.desk.feed.name).stem, "tcw", gap="-")
        name = f"{stem}-{self.desk.navigator.arrangement}.svg"
        self.desk.ask_words("save a picture of the screen to", name, self._save)

    def _file(self, words: str) -> Path | None:
        """The file to write; None if the reader named none, or it cannot be created."""
        if not words:
            return None
        file = Path(os.path.expanduser(words))
        try:
            check(file)
        except OSError as error:
            self.desk.say(f"{plain(file.name)}: {plain(str(error))}: x saves under another name")
            return None
        return file

    def _save(self, words: str) -> None:
        file = self._file(words)
        if file is not None:
            self.desk.app.call_after_refresh(self._save_to, file)

    def _save_to(self, file: Path) -> None:
        try:
            write(file, drawn(self.desk.app).encode())
        except OSError as error:
            self.desk.say(f"{plain(file.name)}: {plain(why(error))}")
        else:
            self.desk.say(f"saved {plain(str(file))}")

    def _export(self, words: str) -> None:
        file = self._file(words)
        if file is None:
            return
        form = next((form for form in FORMATS if file.suffix.lower() == f".{form}"), None)
        if form is None:
            self.desk.say(
                f"a graph is exported as {', '.join(FORMATS)}: end the name with one of these"
            )
            return
        self.desk.say(f"exporting {plain(file.name)} …")
        self.desk.app.run_worker(self._export_to(file, FORMATS.index(form)))

    async def _export_to(self, file: Path, form: int) -> None:
        """Export in the background, since a large graph takes long to lay out."""
        view = replace(self.view)
        try:
            said = await asyncio.to_thread(export_graph, view, file, FORMATS[form])
        except ExportError as error:
            self.desk.say(plain(str(error)))
        else:
            self.desk.say(plain(said))
