"""Pictures for others: the screen as SVG; the graph that is looked at as SVG, PNG or DOT."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from pathlib import Path

from compiler.output_file import check, write
from compiler.output_file import words as why
from viewers.drawing.export import FORMATS, ExportError, export, suggested
from viewers.plain import plain
from workbench.tui.notes import Noting
from workbench.tui.picture import picture


class Saving(Noting):
    """`x` saves what is looked at, under a name that is asked for."""

    def do_export(self) -> None:
        pane = self.focus_pane()
        if pane is not None and pane.pane == "picture":
            words = f"export the graph as {', '.join(FORMATS)} to"
            self.ask_words(words, suggested(self.view), self._export)
        else:
            self.do_picture()

    def do_picture(self) -> None:
        stem = re.sub(r"\W+", "-", Path(self.feed.name).stem).strip("-") or "tcw"
        name = f"{stem}-{self.navigator.arrangement}.svg"
        self.ask_words("save a picture of the screen to", name, self._save)

    def _file(self, words: str) -> Path | None:
        """Where to write; None where nothing was said, or where no new file can be made."""
        if not words:
            return None
        file = Path(os.path.expanduser(words))
        try:
            check(file)
        except OSError as error:
            self.say(f"{plain(file.name)}: {plain(str(error))}: x saves under another name")
            return None
        return file

    def _save(self, words: str) -> None:
        file = self._file(words)
        if file is not None:
            self.call_after_refresh(self._save_to, file)

    def _save_to(self, file: Path) -> None:
        try:
            write(file, picture(self.app).encode())
        except OSError as error:
            self.say(f"{plain(file.name)}: {plain(why(error))}")
        else:
            self.say(f"saved {plain(str(file))}")

    def _export(self, words: str) -> None:
        file = self._file(words)
        if file is None:
            return
        form = next((form for form in FORMATS if file.suffix.lower() == f".{form}"), None)
        if form is None:
            self.say(f"a graph is exported as {', '.join(FORMATS)}: end the name with one of these")
            return
        self.say(f"exporting {plain(file.name)} …")
        self.run_worker(self._export_to(file, FORMATS.index(form)))

    async def _export_to(self, file: Path, form: int) -> None:
        """Laying out a large graph takes a while: it is done beside the screen."""
        view = replace(self.view)
        try:
            said = await asyncio.to_thread(export, view, file, FORMATS[form])
        except ExportError as error:
            self.say(plain(str(error)))
        else:
            self.say(plain(said))
