"""Waiting until the app has nothing left to do, in place of waiting until the processor is idle.

Textual's pilot sleeps 20 ms at a time until the process takes little CPU time, several times a key.
Here the event loop itself is asked: nothing is ready to run, nothing is to be painted, no worker
runs, and the driven compile has delivered what it wrote. Textual 8 and the loop of asyncio are
looked into for this.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import textual.app
import textual.pilot
from rich.console import RenderableType
from textual._compositor import Compositor
from textual._context import active_app
from textual.screen import Screen

from tcw.workbench.tui.bench import Bench
from tcw.workbench.tui.feed import LiveFeed

PATIENCE = 60.0
"""Seconds until an app that is never idle is an error: other work may hold the machine."""
QUIET = 3
"""Turns of the loop in a row without anything to do: a thread's message arrives in the next."""
MOMENT = 0.001
"""Seconds to sleep where a thread is at work."""


async def wait_for_idle(least: float = 0.0, most: float = PATIENCE) -> None:
    """In the place of `textual._wait.wait_for_idle`, with its arguments. A screen that has not
    settled is never taken for one that has."""
    app = active_app.get()
    loop: Any = asyncio.get_running_loop()
    end = time.monotonic() + most
    quiet = 0
    while quiet < QUIET:
        if time.monotonic() > end:
            raise AssertionError(f"the app was not idle within {most:g} s")
        await asyncio.sleep(0)
        if loop._ready:
            quiet = 0
        elif app._exit:
            quiet += 1
        elif screens := _to_be_painted(app):
            for screen in screens:
                screen._on_timer_update()
            quiet = 0
        elif _waits(app):
            await asyncio.sleep(MOMENT)
            quiet = 0
        else:
            quiet += 1


def _to_be_painted(app: textual.app.App[Any]) -> list[Screen[Any]]:
    """The screens that have something new, those behind a dialog first: it is painted over them.

    A screen's timer runs until it is painted. Its other marks do not tell: a painted screen behind
    a dialog keeps some until it is uncovered."""
    visible = [*app._background_screens, app.screen]
    return [screen for screen in visible if screen._update_timer._active.is_set()]


def _waits(app: textual.app.App[Any]) -> bool:
    """Whether something comes by itself: a thread's result, records, the size of the terminal, an
    animation."""
    feeds = [screen.feed for screen in app.screen_stack if isinstance(screen, Bench)]
    return (
        any(not worker.is_finished for worker in app.workers)
        or any(isinstance(feed, LiveFeed) and _undelivered(feed) for feed in feeds)
        or app._resize_event is not None
        or app._batch_count > 0
        or bool(app.animator._animations)
        or bool(app.animator._scheduled)
    )


def _undelivered(feed: LiveFeed) -> bool:
    with feed._lock:
        return bool(feed._batch)


_render_update = Compositor.render_update


def _unseen(
    compositor: Compositor,
    full: bool = False,
    screen_stack: list[Screen[Any]] | None = None,
    simplify: bool = False,
) -> RenderableType | None:
    """In the place of `Compositor.render_update`: a frame that no terminal shows is not drawn,
    which is half of what a key costs. A reader who looks at the screen has all of it drawn."""
    if full:
        return _render_update(compositor, full, screen_stack, simplify)
    compositor._dirty_regions.clear()
    return None


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", wait_for_idle)
    monkeypatch.setattr(Compositor, "render_update", _unseen)
