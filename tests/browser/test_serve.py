"""`tcw serve` in a browser: the first screen is there, keys arrive, and it ends."""

from __future__ import annotations

import asyncio
import io
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.no_torch.cli.served import gone, served
from tests.no_torch.tui.conftest import block_file

pytest.importorskip("textual_serve")

from tests.browser.devtools import Page, chromium

__all__ = ["block_file"]


async def shown(page: Page, words: bytes) -> None:
    async with asyncio.timeout(60):
        while words not in page.received:
            await asyncio.sleep(0.1)


async def test_the_workbench_is_used_in_a_browser(block_file: Path, tmp_path: Path) -> None:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if program is None:
        pytest.skip("no Chromium on this machine")
    with served(str(block_file), cache=tmp_path / "cache") as server:
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await shown(page, b"findings")
            page.received = b""
            await page.type("?")
            await shown(page, b"What needs attention")
            await asyncio.sleep(0.5)
            picture = Image.open(io.BytesIO(await page.picture())).convert("RGB")
            colours = picture.getcolors(1 << 24)
            assert colours is not None
            assert len(colours) > 50, "it is painted, with text in several colours"
            everyone = server.family()
            assert len(everyone) > 1
            assert server.interrupt() == 0
            assert gone(everyone)
            closed = "document.body.classList.contains('-closed')"
            assert await page.evaluate(closed), "the page says that it has ended"
