"""Serves the workbench to one person's browser: each page is a process of its own.

On top of `textual_serve.Server`: a key that only the terminal shows, processes that are started
without a shell and are gone when the server is, and a page that loads nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import click
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server

PAGE = Path(__file__).with_name("page.html")
PATIENCE = 8.0
"""Seconds that a workbench has to end its worker and itself, before it is killed."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Session(AppService):
    """One workbench: the process behind one open page."""

    def __init__(self, words: Sequence[str], socket: web.WebSocketResponse, server: Pages) -> None:
        super().__init__(
            "",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=lambda: _close(socket),
            download_manager=server.download_manager,
        )
        self._words = words

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """In a session of its own: a ctrl-c in the terminal is the server's to pass on."""
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        return self._process

    async def stop(self) -> None:
        """End the process, and wait until it is gone."""
        process = self._process
        if process is None:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await super().stop()
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _close(socket: web.WebSocketResponse) -> None:
    await socket.close()


class Pages(Server):
    """The server. Whoever has the key can do what the person at the terminal can."""

    def __init__(self, words: Sequence[str], listening: socket.socket) -> None:
        host, self.number = listening.getsockname()[:2]
        super().__init__("tcw", host=host, port=self.number)
        self.words = words
        self.listening = listening
        self.key = secrets.token_urlsafe(16)
        self._open: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """What to open in the browser; it has the key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.number}/?key={self.key}"

    @property
    def _cookie(self) -> str:
        return f"tcw-{self.number}"  # cookies do not tell ports apart

    def run(self) -> None:
        """Serve until ctrl-c; every process that a page started is gone then."""
        web.run_app(
            self._make_app(),
            sock=self.listening,
            print=lambda *words: None,
            access_log=None,
            shutdown_timeout=PATIENCE,
        )

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._with_key)
        return app

    @web.middleware
    async def _with_key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse who has not got the key: other users of this machine, and pages of other sites
        that the browser has open, reach this port as well."""
        given = request.query.get("key", "")
        if request.path == "/" and self._is_key(given):
            answer = web.HTTPFound("/")
            answer.set_cookie(self._cookie, self.key, httponly=True, samesite="Strict")
            return answer
        if not self._is_key(request.cookies.get(self._cookie, "")):
            raise web.HTTPForbidden(text="open the address that tcw serve printed: it has the key")
        return await handler(request)

    def _is_key(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.key.encode())

    async def on_startup(self, app: web.Application) -> None:
        click.echo(f"tcw in the browser: {self.address}\nctrl-c ends it")

    async def on_shutdown(self, app: web.Application) -> None:
        """Have each open page end its workbench."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=PAGE.read_text(encoding="utf-8"), content_type="text/html")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Start a workbench, and pass on what is typed and shown until either side ends."""
        connection = web.WebSocketResponse(heartbeat=15)
        await connection.prepare(request)
        width, height = (_cells(request, name) for name in ("width", "height"))
        task = asyncio.create_task(self._attend(connection, width or 80, height or 24))
        self._open.add(task)
        try:
            await task
        finally:
            self._open.discard(task)
            await connection.close()
        return connection

    async def _attend(self, connection: web.WebSocketResponse, width: int, height: int) -> None:
        session = Session(self.words, connection, self)
        await session.start(width, height)
        try:
            await self._process_messages(connection, session)
        finally:
            await session.stop()


def _cells(request: web.Request, name: str) -> int:
    given = request.query.get(name, "")
    return int(given) if given.isdecimal() and len(given) < 5 else 0
