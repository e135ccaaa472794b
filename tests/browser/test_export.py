"""The exported page in a browser, from a file: lit by click and key, without a request."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.block_trace import block_trace
from tests.no_torch.hostile import hostile
from tests.no_torch.html.test_document import page as exported

pytest.importorskip("aiohttp")

from tests.browser.devtools import Page, chromium

LIT = """[...document.querySelectorAll('[data-pane=%s] .row')]
    .filter(row => /t-/.test(row.className)).length"""
TAB = "[...document.querySelectorAll('#tabs button')].find(b => b.textContent === '%s').click()"


@pytest.fixture
def program() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    return found


async def opened(page: Page, file: Path) -> None:
    await page.go(file.as_uri())
    for _ in range(200):
        if await page.evaluate("document.querySelectorAll('#middle .pane').length"):
            return
    pytest.fail("no pane was drawn")


async def quiet(page: Page) -> None:
    """The page asked for nothing and was refused nothing."""
    assert await page.evaluate("performance.getEntriesByType('resource').length") == 0
    assert await page.evaluate("document.scripts.length") == 2
    assert await page.evaluate("window.pwned === undefined") is True


async def test_a_click_and_a_key_light_the_counterparts(program: str, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(exported(block_trace())[1])
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        await page.evaluate(TAB % "source")
        rows = "[...document.querySelectorAll('[data-pane=source] .row')]"
        await page.evaluate(f"{rows}.find(r => r.textContent.includes('softmax')).click()")
        for pane in ("graph", "kernel"):
            assert await page.evaluate(LIT % pane), pane
        assert (
            await page.evaluate(f"{rows}.filter(r => /t-selected/.test(r.className)).length") == 1
        )
        before = await page.evaluate(f"{rows}.findIndex(r => /cursor/.test(r.className))")
        await page.press("j")
        after = await page.evaluate(f"{rows}.findIndex(r => /cursor/.test(r.className))")
        assert after > before
        await page.press("]")
        assert await page.evaluate(
            "document.querySelector('#tabs [aria-selected=true]').textContent"
        ) not in ("source", "")
        await page.press("Escape")
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = await page.evaluate(ground)
        await page.press("t")
        assert await page.evaluate(ground) != dark
        await quiet(page)


async def test_hostile_text_runs_nothing(program: str, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(exported(hostile(block_trace(), "added"), 300_000, 100)[1])
    async with chromium(program, tmp_path / "profile") as page:
        await opened(page, file)
        for name in ("overview", "source", "fusion"):
            await page.evaluate(TAB % name)
            await quiet(page)
