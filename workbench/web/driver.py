"""The terminal of a workbench in a browser: Textual's, without losing the window's size."""

from __future__ import annotations

from typing import cast

from textual.drivers.web_driver import WebDriver
from textual.events import Resize
from textual.geometry import Size


class PageDriver(WebDriver):
    """`WebDriver` that tells the app sizes in the order in which they came.

    `WebDriver` posts the first size from a coroutine, and later ones directly: one that comes while
    the app starts would overtake the first, and the app would keep the size of a smaller window.
    """

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Called in the thread that reads packets."""
        if packet_type != "resize":
            super().on_meta(packet_type, payload)
            return
        self._size = (cast(int, payload["width"]), cast(int, payload["height"]))
        size = Size(*self._size)
        self.send_message(Resize(size, size))
