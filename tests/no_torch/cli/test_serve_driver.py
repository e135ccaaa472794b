"""The terminal of a workbench in a browser."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from textual.app import App
from textual.drivers.web_driver import WebDriver
from textual.events import Resize
from textual.message import Message

from tcw.workbench.web.driver import PageDriver

FIRST, LATER = (80, 24), (200, 50)


class Messages:
    """An app's queue, which a driver fills."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []

    def post_message(self, message: Message) -> bool:
        if isinstance(message, Resize):
            self.sizes.append(tuple(message.size))
        return True

    async def _post_message(self, message: Message) -> bool:
        return self.post_message(message)

    def call_later(self, *given: object) -> None:
        pass


class ReadsAtOnce:
    """A reader's thread that is faster than the app."""

    def __init__(self, driver: WebDriver) -> None:
        self.driver = driver

    def start(self) -> None:
        width, height = LATER
        self.driver.on_meta("resize", {"type": "resize", "width": width, "height": height})


async def test_a_size_that_comes_at_the_start_follows_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("textual.drivers.web_driver.InputReader", object)
    monkeypatch.setattr(WebDriver, "write", lambda self, data: None)
    app = Messages()
    driver = PageDriver(cast("App[Any]", app), size=FIRST)
    monkeypatch.setattr(driver, "_write", lambda data: None)
    monkeypatch.setattr(driver, "_key_thread", ReadsAtOnce(driver))
    driver.start_application_mode()
    for _ in range(5):
        await asyncio.sleep(0)
    assert app.sizes == [FIRST, LATER]
