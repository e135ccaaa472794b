"""The base of the controllers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcw.viewers.panes.view import View

if TYPE_CHECKING:
    from tcw.workbench.tui.bench import Bench


@dataclass(eq=False)
class Controller:
    """Commands that belong together, and the controllers that they need."""

    desk: Bench
    """The screen: what is shown, and how to show or ask something."""

    @property
    def view(self) -> View:
        return self.desk.view
