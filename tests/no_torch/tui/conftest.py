from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.kit.theme import ThemeName
from tcw.viewers.panes.view import Derived
from tcw.workbench.tui.app import Workbench
from tcw.workbench.tui.bench import Bench
from tcw.workbench.tui.compile_plan import Allowed
from tcw.workbench.tui.feed import LiveFeed
from tcw.workbench.tui.pane import PaneView
from tcw.workbench.tui.picture import painted, picture
from tests.block_trace import block_trace
from tests.no_torch.tui.cells import described
from tests.no_torch.tui.driven import FakeDriver, compiler, head, settings_of
from tests.no_torch.tui.idle import PATIENCE, idle

__all__ = ["idle"]

KEYS = {" ": "space", ":": "colon", "/": "slash"}


def encoded(records: list[AnyRecord]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


@pytest.fixture(scope="session")
def block_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "block.tcw"
    path.write_bytes(encoded(block_trace()))
    return path


class Reader:
    """A person at the keyboard."""

    def __init__(self, app: Workbench, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def bench(self) -> Bench:
        bench = next(screen for screen in self.app.screen_stack if isinstance(screen, Bench))
        assert isinstance(bench, Bench)
        return bench

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait for what a key set off: a palette's choice rebuilds panes some messages later."""
        await self.pilot.pause()

    async def type(self, words: str) -> None:
        await self.press(*(KEYS.get(letter, letter) for letter in words))

    async def choose(self, words: str) -> None:
        """A command of the palette."""
        await self.press("colon")
        await self.type(words)
        await self.press("enter")

    async def go(self, arrangement: str) -> None:
        """As by the palette, without its typing."""
        self.bench.navigator.go(arrangement, self.focus())
        await self.bench.rebuild()
        await self.settle()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for it, as long as a loaded machine may need."""
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"it did not hold within {PATIENCE} s:\n{self.text()}")
            await self.pilot.pause(0.02)
        await self.pilot.pause()

    def pane(self, name: str) -> PaneView:
        return next(pane for pane in self.bench.panes() if pane.pane == name)

    def focus(self) -> str:
        pane = self.bench.focus_pane()
        return pane.pane if pane else ""

    def lines(self) -> list[str]:
        """The screen as text, as it would be sent to the terminal."""
        return ["".join(part.text for part in line) for line in painted(self.app)]

    def cells(self) -> list[int]:
        """How many cells each line of the screen takes."""
        return [cell_len(line) for line in self.lines()]

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines()) + "\n"

    def described(self) -> str:
        """The screen as text, and the roles of its cells."""
        return described(self.app, self.bench.look.name)

    def svg(self) -> str:
        """The screen as a picture."""
        return picture(self.app)


Open = Callable[..., AbstractAsyncContextManager[Reader]]


@pytest.fixture
def open_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Open:
    """`async with open_trace(path, (120, 40)) as reader`: shown and read."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    @asynccontextmanager
    async def opened(
        path: Path,
        size: tuple[int, int] = (120, 40),
        theme: ThemeName | None = None,
        allowed: Allowed | None = None,
        against: Derived | None = None,
    ) -> AsyncIterator[Reader]:
        app = Workbench(path, theme, allowed=allowed, against=against)
        async with app.run_test(size=size) as pilot:
            reader = Reader(app, pilot)
            await reader.until(lambda: reader.bench.state != "opening")
            yield reader
            reader.lines()

    return opened


class Driver(Reader):
    """A person who drives a compile."""

    def __init__(self, app: Workbench, pilot: Pilot[None], driver: FakeDriver) -> None:
        super().__init__(app, pilot)
        self.driver = driver

    @property
    def sent(self) -> list[object]:
        """The commands that the worker got."""
        return list(self.driver.commands)


Drive = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Drive:
    """`async with drive((120, 40), asked={…}) as driver`: a compile that waits at its start."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    @asynccontextmanager
    async def driven(
        size: tuple[int, int] = (120, 40), theme: ThemeName | None = None, **state: object
    ) -> AsyncIterator[Driver]:
        fake = FakeDriver(head(), compiler)
        vars(fake)["state"] = {"run": 1, "steps": 0, "open": None, **state}
        feed = LiveFeed(fake.start, settings_of(file=str(tmp_path / "block.py")), None)
        app = Workbench(feed, theme)
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, pilot, fake)
            await driver.until(lambda: driver.bench.state == "waiting")
            yield driver
            driver.lines()

    return driven
