"""A page of steps, pressed as a reader would press them: real compiles, the screens as text.

A page names a command and then its screens, each in a comment above the block that shows it:

    <!-- run tcw step sample_models/softmax_layernorm.py --engine tcw -->
    <!-- screen keys="d y" until="Right" from="Right" to="why" -->

`keys` are pressed one by one, `until` is awaited, and the block holds the lines of the screen from
the first that has `from` to the next that has `to`. A screen without a block is only awaited.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tcw.workbench.cli import open as opening
from tcw.workbench.cli import step
from tcw.workbench.request.options import settings_of
from tcw.workbench.tui.app import Workbench
from tcw.workbench.tui.feed import LiveFeed
from tcw.workbench.worker.client import Driver
from tests.no_torch.tui.conftest import KEYS, Reader

SIZE = (120, 40)
SECONDS = 200
COMMENT = re.compile(r"<!-- (run|screen) (.*?) -->\n(?:```\n(.*?)```\n)?", re.DOTALL)


@dataclass
class Screen:
    """One step of a session."""

    keys: tuple[str, ...]
    until: str
    first: str
    last: str
    place: tuple[int, int]
    """Where the block's text is in the page."""

    @property
    def shown(self) -> bool:
        return self.place != (-1, -1)


@dataclass
class Session:
    """A command, and the screens that its reader sees."""

    command: str
    screens: list[Screen]


def sessions(page: str) -> list[Session]:
    found: list[Session] = []
    for match in COMMENT.finditer(page):
        kind, words, _ = match.groups()
        if kind == "run":
            found.append(Session(words, []))
        else:
            given = dict(word.split("=", 1) for word in shlex.split(words))
            found[-1].screens.append(
                Screen(
                    tuple(given.pop("keys", "").split()),
                    given.pop("until"),
                    given.pop("from", ""),
                    given.pop("to", ""),
                    match.span(3),
                )
            )
            assert not given, f"not known: {given}"
    return found


def with_blocks(page: str, made: list[tuple[tuple[int, int], str]]) -> str:
    """The page with other texts in its blocks."""
    for (start, end), text in sorted(made, reverse=True):
        page = page[:start] + text + page[end:]
    return page


@asynccontextmanager
async def opened(command: str, folder: Path) -> AsyncIterator[Reader]:
    """`tcw step …` or `tcw open …` with a reader in front of it."""
    _, verb, file, *options = shlex.split(command)
    path = folder / file
    if verb == "step":
        ctx = step.command.make_context("step", [str(path), *options])
        breakpoints = step.breakpoints_of(ctx, path)
        feed = LiveFeed(Driver, settings_of(ctx, path), None, breakpoints)
        app = Workbench(feed, "dark", bool(ctx.params["predict"]))
    else:
        ctx = opening.command.make_context("open", [str(path), *options])
        app = Workbench(path, "dark", bool(ctx.params["predict"]))
    async with app.run_test(size=SIZE) as pilot:
        yield Reader(app, pilot)
        await pilot.press("ctrl+c")


async def press(reader: Reader, screen: Screen) -> str:
    """Press the keys of a step; returns the lines that its block shows, "" where it has none."""
    for key in screen.keys:
        await reader.pilot.press(KEYS.get(key, key))
        await reader.settle()
    async with asyncio.timeout(SECONDS):
        while screen.until not in reader.text():
            await reader.pilot.pause(0.05)
    await reader.settle()
    lines = [line.rstrip() for line in reader.text().splitlines()]
    if not screen.shown:
        return ""
    start = next(i for i, line in enumerate(lines) if screen.first in line)
    end = next(i for i, line in enumerate(lines) if i >= start and screen.last in line)
    shown = lines[start : end + 1]
    blank = [not line.strip(" │") for line in shown]
    kept = [line for i, line in enumerate(shown) if not (blank[i] and i and blank[i - 1])]
    return "\n".join(kept) + "\n"
