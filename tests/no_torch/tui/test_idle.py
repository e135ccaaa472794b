"""Waiting for the app: a screen that has not settled is an error, never a picture."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from pathlib import Path

import pytest
import textual.screen

from tcw.workbench.tui.overlay import Consent
from tests.no_torch.tui.conftest import Open
from tests.no_torch.tui.idle import PATIENCE, wait_for_idle


async def test_an_app_that_never_rests_is_an_error(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        reader.app._batch_count += 1
        try:
            with pytest.raises(AssertionError, match="not idle within"):
                await wait_for_idle(0, 0.05)
        finally:
            reader.app._batch_count -= 1
        await wait_for_idle()


async def test_a_dialog_that_its_timer_painted_shows_what_is_behind_it(
    open_trace: Open, block_file: Path
) -> None:
    """On a busy machine a screen's own timer may come before the test paints it."""
    async with open_trace(block_file) as reader:
        header = reader.lines()[0]
        assert header.strip()
        await reader.app.push_screen(Consent(reader.bench.look, "refused"))
        for _ in range(20):
            await asyncio.sleep(0)
            copy_context().run(reader.app.screen._on_timer_update)
        await reader.settle()
        assert reader.lines()[0] == header
        assert reader.described().startswith(reader.text())


async def test_what_changes_behind_a_dialog_is_waited_for(
    open_trace: Open, block_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a screen's own timer may come after the test looks."""
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", PATIENCE)
    async with open_trace(block_file) as reader:
        await reader.app.push_screen(Consent(reader.bench.look, "refused"))
        await reader.settle()
        header = reader.lines()[0]
        reader.bench.query_one("#header").display = False
        await reader.settle()
        assert reader.lines()[0] != header
