"""Chromium, driven by its DevTools protocol: a page that stays open and talks to its server."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

WINDOW = (1200, 800)
SECONDS = 60


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.received = b""
        """What came over the page's own web sockets."""
        self.requests: list[str] = []
        """Addresses that the page asked for, its own first."""
        self.errors: list[str] = []
        """Warnings and errors of the console, what a policy refused, and uncaught exceptions."""
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if told.get("method") == "Network.webSocketFrameReceived":
                frame = told["params"]["response"]
                data = frame["payloadData"]
                self.received += base64.b64decode(data) if frame["opcode"] == 2 else data.encode()
            elif told.get("method") == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])
            elif told.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled"):
                said = told["params"].get("entry", told["params"])
                if said.get("level", said.get("type")) in ("error", "warning"):
                    self.errors.append(json.dumps(said))
            elif told.get("method") == "Audits.issueAdded":
                self.errors.append(json.dumps(told["params"]["issue"]))
            elif told.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(told["params"]["exceptionDetails"]))
            elif told.get("id") in self._answers:
                self._answers.pop(told["id"]).set_result(told.get("result", {}))

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await asyncio.wait_for(answer, SECONDS)

    async def go(self, address: str) -> None:
        await self.call("Network.enable")
        for domain in ("Page", "Runtime", "Log", "Audits"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=address)

    async def settle(self) -> None:
        """Waits until the browser has had time to tell what went wrong in the page so far."""
        await self.evaluate("new Promise((done) => setTimeout(done, 500))")

    async def evaluate(self, expression: str) -> Any:
        found = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        return found["result"].get("value")

    async def type(self, text: str) -> None:
        for letter in text:
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    async def press(self, key: str, *, control: bool = False) -> None:
        held = 2 if control else 0
        await self.call("Input.dispatchKeyEvent", type="rawKeyDown", key=key, modifiers=held)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=held)

    async def picture(self) -> bytes:
        """PNG of what the tab shows."""
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def chromium(program: str, profile: Path) -> AsyncIterator[Page]:
    width, height = WINDOW
    process = subprocess.Popen(
        [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--remote-debugging-port=0", f"--window-size={width},{height}",
            f"--user-data-dir={profile}", "about:blank",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with aiohttp.ClientSession() as session:
            port = await _port(profile / "DevToolsActivePort")
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                tabs = await answer.json()
            address = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                page = Page(socket)
                listening = asyncio.create_task(page.listen())
                yield page
                listening.cancel()
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(profile, ignore_errors=True)


async def _port(file: Path) -> int:
    for _ in range(SECONDS * 10):
        if file.is_file() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        await asyncio.sleep(0.1)
    raise TimeoutError("Chromium did not start")
