"""`tcw open`: the terminal workbench on a recorded or a growing trace."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from textual.app import App

from viewers.plain import plain
from workbench.tui.bench import Bench
from workbench.tui.theme import THEMES, Theme, ThemeName


class Workbench(App[None]):
    """Textual's own palette and bindings are off: `commands.py` has every key."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "tcw"

    def __init__(self, path: Path, theme: ThemeName | None = None) -> None:
        colourless = theme == "mono" or (theme is None and "NO_COLOR" in os.environ)
        super().__init__(ansi_color=colourless)
        self.look: Theme = THEMES["mono" if colourless else theme or "dark"]
        self.path = path
        self.last_words = ""

    def on_mount(self) -> None:
        self.push_screen(Bench(self.path, self.look))

    def give_up(self, why: str, code: int) -> None:
        """Leave with one line on stderr."""
        self.last_words = plain(why)
        self.exit(return_code=code)

    def _handle_exception(self, error: Exception) -> None:
        if self.is_headless:
            super()._handle_exception(error)
            return
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" ({last[0].filename}:{last[0].lineno})" if last else ""
        self.give_up(f"tcw open failed: {type(error).__name__}: {error}{where}", 4)


def run(path: Path) -> int:
    """Show the trace at `path` until the reader quits; answers the exit code.

    0; 2 where the file cannot be read or is no trace; 4 for a fault of ours. One line on stderr
    says why.
    """
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        print(f"cannot open {plain(str(path))}: {error.strerror}", file=sys.stderr)
        return 2
    app = Workbench(path)
    app.run()
    if app.last_words:
        print(app.last_words, file=sys.stderr)
    return app.return_code or 0
