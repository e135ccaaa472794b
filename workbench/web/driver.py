"""The terminal of a workbench in a browser: Textual's, without losing the window's size."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from textual.app import App
from textual.drivers.web_driver import WebDriver
from textual.events import Resize
from textual.geometry import Size


class PageDriver(WebDriver):
    """`WebDriver` that tells the app sizes in the order in which they came.

    `WebDriver` posts the first size from a coroutine, and later ones directly: one that comes while
    the app starts would overtake the first, and the app would keep the size of a smaller window.
    """

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start_application_mode(self) -> None:
        self._loop = asyncio.get_running_loop()
        super().start_application_mode()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Called in the thread that reads packets."""
        if packet_type != "resize" or self._loop is None:
            super().on_meta(packet_type, payload)
            return
        self._size = (cast(int, payload["width"]), cast(int, payload["height"]))
        size = Size(*self._size)
        event = Resize(size, size)
        asyncio.run_coroutine_threadsafe(self._app._post_message(event), self._loop)
