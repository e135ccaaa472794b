"""`tcw serve` in a browser: it is used there, and no other page gets its key."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image

from tests.long import mostly_long
from tests.no_torch.cli.served import Served, gone, served, until
from tests.no_torch.tui.conftest import block_file

pytest.importorskip("textual_serve")

import aiohttp
from aiohttp import web

from tcw.viewers.plain import GLYPHS
from tests.browser.devtools import Page, chromium

__all__ = ["block_file"]


async def shown(page: Page, words: bytes) -> None:
    async with asyncio.timeout(60):
        while words not in page.received:
            await asyncio.sleep(0.1)


async def says(page: Page, expression: str, wanted: object) -> None:
    """Wait until the expression has this value."""
    async with asyncio.timeout(60):
        while await page.evaluate(expression) != wanted:
            await asyncio.sleep(0.1)


async def test_the_workbench_is_used_in_a_browser(
    program: str, block_file: Path, tmp_path: Path
) -> None:
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


async def test_a_page_says_that_its_workbench_is_starting(
    program: str, block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path / "cache") as server:
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await says(page, "document.querySelector('#starting')?.checkVisibility()", True)
            await shown(page, b"findings")
            await says(page, "document.querySelector('#starting').checkVisibility()", False)


async def test_a_page_is_loaded_again_without_the_key_in_the_address_bar(
    program: str, block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path / "cache") as server:
        alone = server.family()
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await shown(page, b"findings")
            assert await page.evaluate("location.href") == server.site
            (first,) = server.family() - alone
            await page.evaluate("window.before = true")
            await page.call("Page.reload")
            await says(page, "window.before ?? 'another document'", "another document")
            page.received = b""
            await shown(page, b"findings")
            await page.type("?")
            await shown(page, b"What needs attention")
            assert await page.evaluate("location.href") == server.site
            assert until(lambda: len(server.family()) == 2)
            assert first not in server.family()


async def test_a_workbench_that_has_ended_is_started_again(
    program: str, block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path / "cache") as server:
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await shown(page, b"findings")
            await page.type("q")
            await says(page, "document.body.classList.contains('-closed')", True)
            assert until(lambda: len(server.family()) == 1)
            page.received = b""
            await page.evaluate("document.querySelector('#ended a').click()")
            await shown(page, b"findings")


FITS = """(() => {
  const screen = document.querySelector(".xterm-screen").getBoundingClientRect();
  const rest = [innerWidth - screen.right, innerHeight - screen.bottom];
  return rest.every((left) => 0 <= left && left < 50);
})()"""


WHOLE = """(() => {
  const {buffer, rows, cols} = xterm;
  const text = (row) =>
    buffer.active.getLine(buffer.active.viewportY + row).translateToString(false, 0, cols);
  return text(0).startsWith(" tcw ") && text(rows - 1).trimEnd().endsWith("all commands");
})()"""
"""Whether the first row is the header and the last one the footer, to its end."""


@pytest.mark.parametrize("size", mostly_long(("12", "24"), ("24",)))
async def test_the_terminal_fits_a_window_that_grows_and_shrinks(
    program: str, size: str, block_file: Path, tmp_path: Path
) -> None:
    given = (str(block_file), "--font-size", size)
    with served(*given, cache=tmp_path / "cache") as server:
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await shown(page, b"findings")
            for width, height in ((1920, 1080), (1280, 800), (600, 400), (1200, 800)):
                metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
                await page.call("Emulation.setDeviceMetricsOverride", mobile=False, **metrics)
                await says(page, "`${innerWidth} ${innerHeight}`", f"{width} {height}")
                await says(page, FITS, True)
                await says(page, WHOLE, True)


async def test_every_glyph_stays_in_its_cell(
    program: str, block_file: Path, tmp_path: Path
) -> None:
    """Each is written once a row, with nothing beside it."""
    with served(str(block_file), "--font-size", "32", cache=tmp_path / "cache") as server:
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await shown(page, b"findings")
            await asyncio.sleep(1)
            screen = await page.evaluate(
                "JSON.stringify(document.querySelector('.xterm-screen').getBoundingClientRect())"
            )
            box, rows, columns = (
                json.loads(screen),
                *await page.evaluate("[xterm.rows, xterm.cols]"),
            )
            height, width = box["height"] / rows, box["width"] / columns
            wide = []
            for first in range(0, len(GLYPHS), rows - 1):
                some = list(GLYPHS)[first : first + rows - 1]
                text = "\x1b[0m\x1b[2J\x1b[H" + "".join(f"{one}\r\n" for one in some)
                await page.evaluate(f"xterm.write({json.dumps(text)})")
                await asyncio.sleep(0.5)
                picture = Image.open(io.BytesIO(await page.picture())).convert("L")
                for row, glyph in enumerate(some):
                    top = box["y"] + row * height
                    beside = (box["x"] + width + 1, top + 1, box["x"] + 3 * width, top + height - 1)
                    low, high = picture.crop(tuple(map(round, beside))).getextrema()
                    if high - low > 40:
                        wide.append(glyph)
            assert wide == []


async def test_keys_change_the_font_size(program: str, block_file: Path, tmp_path: Path) -> None:
    with served(str(block_file), "--font-size", "20", cache=tmp_path / "cache") as server:
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await shown(page, b"findings")
            columns = await page.evaluate("xterm.cols")
            for key, size in (("-", 19), ("-", 18), ("+", 19), ("=", 20), ("=", 21), ("0", 20)):
                await page.press(key, control=True)
                await says(page, "Number(xterm.options.fontSize)", size)
                await says(page, FITS, True)
                assert (await page.evaluate("xterm.cols") > columns) == (size < 20)
            page.received = b""
            await page.type("?")
            await shown(page, b"What needs attention")


@pytest.mark.parametrize("key", mostly_long(("", "?key=wrong"), ("?key=wrong",)))
async def test_a_page_without_the_key_says_where_it_is(
    program: str, key: str, block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path / "cache") as server:
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.site + key)
            words = "Open the address that tcw serve printed: it contains the key."
            await says(page, "document.body?.innerText.trim()", words)


ATTACK = """
new Promise(async (resolve) => {
  const found = {};
  const reached = (name) => (event) => (found[name] = event.type);
  const socket = new WebSocket("ws://SITE/ws/TOKEN");
  socket.onopen = socket.onerror = reached("socket");
  const frame = document.createElement("iframe");
  frame.src = "http://SITE/?key=KEY";
  document.body.append(frame);
  const script = document.createElement("script");
  script.onload = script.onerror = reached("script");
  script.src = "http://SITE/FILES/page.js";
  document.body.append(script);
  found.read = await fetch("http://SITE/?key=KEY").then(() => "read", () => "refused");
  await fetch("http://SITE/?key=KEY", { mode: "no-cors" }).then(() => {}, () => {});
  setTimeout(() => resolve(JSON.stringify(found)), 2000);
})
"""


@asynccontextmanager
async def another_site(requests: list[web.BaseRequest]) -> AsyncIterator[str]:
    """A server at another port of this machine."""

    async def answer(request: web.BaseRequest) -> web.Response:
        requests.append(request)
        return web.Response(text="<body></body>", content_type="text/html")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    yield f"http://{host}:{port}/"
    await runner.cleanup()


async def test_a_page_of_another_port_gets_neither_the_key_nor_a_workbench(
    program: str, block_file: Path, tmp_path: Path
) -> None:
    """It has even the key and a token here: what it lacks is to be of this server."""
    requests: list[web.BaseRequest] = []
    with served(str(block_file), cache=tmp_path / "cache") as server:
        key = server.address.partition("?key=")[2]
        async with chromium(program, tmp_path / "profile") as page:
            await page.go(server.address)
            await shown(page, b"findings")
            files, token = await _of_a_new_page(server)
            async with another_site(requests) as site:
                await page.call("Page.navigate", url=site)
                await says(page, "location.href", site)
                assert until(lambda: len(server.family()) == 1), "the first page has ended"
                attack = ATTACK.replace("SITE", server.site.split("/")[2]).replace("KEY", key)
                attack = attack.replace("TOKEN", token).replace("FILES", files)
                found = await page.call("Runtime.evaluate", expression=attack, awaitPromise=True)
                assert json.loads(found["result"]["value"]) == {
                    "read": "refused",
                    "socket": "error",
                    "script": "error",
                }
                assert len(server.family()) == 1, "no workbench was started"
        assert server.interrupt() == 0
        assert server.rest() == "ctrl-c ends it\n"
    assert requests
    assert not any(key in f"{request.headers} {request.path_qs}" for request in requests)


async def _of_a_new_page(server: Served) -> tuple[str, str]:
    """Where its files are, and its token."""
    async with aiohttp.ClientSession() as session, session.get(server.address) as answer:
        text = await answer.text()
    files = re.search(r'src="/(\w+)/page.js"', text)
    token = re.search(r'data-token="([^"]+)"', text)
    assert files is not None
    assert token is not None
    return files[1], token[1]
