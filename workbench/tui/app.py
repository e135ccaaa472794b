"""`tcw open`: the terminal workbench on a recorded or a growing trace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from textual.app import App

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

    def on_mount(self) -> None:
        self.push_screen(Bench(self.path, self.look))


def run(path: Path) -> int:
    """Show the trace at `path` until the reader quits; answers the exit code.

    0; 2 where the file cannot be read or is no trace, with one line on stderr that says why.
    """
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        print(f"cannot open {path}: {error.strerror}", file=sys.stderr)
        return 2
    app = Workbench(path)
    app.run()
    return app.return_code or 0
