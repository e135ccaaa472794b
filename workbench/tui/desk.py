"""What a controller may ask of the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from textual.app import App
from textual.message import Message
from textual.widget import Widget

from viewers.kit.theme import Theme, ThemeName
from viewers.navigator import Navigator
from viewers.panes.view import View
from viewers.recording import Recording
from workbench.tui.feed import Feed
from workbench.tui.live_feed import LiveFeed
from workbench.tui.overlay import PaletteChoice
from workbench.tui.pane import PaneView
from workbench.tui.stage import Stage


class Desk(Protocol):
    """The screen, as its controllers see it: what is shown, and how to show or ask something."""

    feed: Feed
    navigator: Navigator
    look: Theme
    stage: Stage
    spine: PaneView
    note: str
    """The message in the footer."""

    @property
    def app(self) -> App[object]: ...

    @property
    def view(self) -> View: ...

    @property
    def recording(self) -> Recording:
        """The whole trace."""

    # Panes

    def panes(self) -> list[PaneView]:
        """The panes on the screen, the spine first."""

    def focus_pane(self) -> PaneView | None: ...

    def focus_on(self, *names: str) -> None:
        """Focus the first of these panes that is on the screen, else the first pane."""

    def set_focus(self, widget: Widget | None) -> None: ...

    async def rebuild(self) -> None:
        """Build the panes of the current arrangement if it is new, and fill them."""

    def refresh_all(self) -> None:
        """Refill panes and edges."""

    async def show(self, arrangement: str) -> None:
        """Show an arrangement; if it is shown already, go back."""

    async def use_theme(self, name: ThemeName) -> None: ...

    # Messages and questions

    def say(self, words: str) -> None:
        """Show a message in the footer until the next key."""

    def offer(self, words: str) -> None:
        """Have the next `y` copy these words."""

    def ask_words(self, prompt: str, words: str, then: Callable[[str], object]) -> None:
        """Ask for a line of text and pass it to `then`; `esc` cancels."""

    def choose(self, choices: Sequence[PaletteChoice], asks: str = "") -> None:
        """Let the reader choose from a list; `esc` cancels."""

    # Others

    def post_message(self, message: Message) -> bool: ...

    def hand_over(self, feed: LiveFeed) -> None:
        """Replace this screen by one that drives `feed`."""


@dataclass(eq=False)
class Controller:
    """Commands that belong together, and the controllers that they need."""

    desk: Desk

    @property
    def view(self) -> View:
        return self.desk.view
