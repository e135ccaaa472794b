"""Serves the workbench to one person's browser: each page has its own process.

The page is ours; its terminal (xterm.js) and fonts come from `textual_serve`.
"""

from __future__ import annotations

import asyncio
import html
import secrets
import signal
import socket
from asyncio import Task
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from string import Template

import click
import textual_serve
from aiohttp import web

from tcw.workbench.request.faults import report_fault
from tcw.workbench.web.connections import Connection, Connections, Loop, Visitors
from tcw.workbench.web.session import MESSAGE_BYTES, PATIENCE, PageSession, fitting

HERE = Path(__file__).parent
STATIC = Path(textual_serve.__file__).parent / "static"
PAGES = 8
"""Pages open at once. Each is a process of about 150 MB; `tcw step` adds a worker with torch."""
KEYLESS = "open the address that tcw serve printed: it contains the key"
FULL = f"tcw serve allows {PAGES} open pages: close one and reload this one"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; font-src 'self'; "
        "img-src data:; style-src 'self' 'unsafe-inline'; "  # xterm.js creates style sheets
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "tcw",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages:
    """The server. Anyone with the key can do what the person at the terminal can."""

    def __init__(
        self, words: Sequence[str], host: str, listening: socket.socket, font_size: int
    ) -> None:
        self._words = words
        self._font_size = font_size
        self._listening = listening
        self._visitors = Visitors(host, listening)
        self._seats = asyncio.Semaphore(PAGES)
        self._open: set[Task[None]] = set()
        self._files = f"/{secrets.token_hex(8)}"
        """The path of a page's files. It is new for each server, so the browser cannot have cached
        other files under these names from an earlier server on this port."""

    def run(self) -> None:
        """Serve until ctrl-c. On return, every process that a page started is gone."""
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        runner = web.AppRunner(self._app(), shutdown_timeout=PATIENCE)
        await runner.setup()
        assert runner.server is not None
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                loop.add_signal_handler(number, ended.set)
        accept = Connections(runner.server).accept
        listening = await loop.create_server(accept, sock=self._listening)
        click.echo(f"tcw in the browser: {self._visitors.address}\nctrl-c ends it")
        await ended.wait()
        listening.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._checked])
        app.router.add_get("/", self._page, allow_head=False)
        app.router.add_get("/ws/{token}", self._socket, allow_head=False)
        app.router.add_get(f"{self._files}/page.js", _script, allow_head=False)
        app.router.add_static(f"{self._files}/static", STATIC)
        app.on_response_prepare.append(_protect)
        return app

    @web.middleware
    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests from elsewhere, and paths that do not exist."""
        fault = self._visitors.fault(request)
        if fault is not None:
            raise self._refused(web.HTTPForbidden, fault)
        if request.match_info.http_exception is not None:
            raise self._refused(web.HTTPForbidden, KEYLESS)
        try:
            return await handler(request)
        except (web.HTTPException, ConnectionError):  # a response, or nobody to send one to
            raise
        except Exception as error:
            report_fault(error, ["serve"])
            raise web.HTTPInternalServerError from error

    async def _page(self, request: web.Request) -> web.StreamResponse:
        """A page with its own token."""
        if not self._visitors.has_key(request):
            raise self._refused(web.HTTPForbidden, KEYLESS)
        async with self._seat():
            token = self._visitors.new_token()
            body = self._filled("page.html", token=token, size=str(self._font_size))
            return web.Response(text=body, content_type="text/html")

    @asynccontextmanager
    async def _seat(self) -> AsyncIterator[None]:
        """Reserve one page, waiting briefly: a reloaded page opens again before the old one ends.
        Raises HTTPServiceUnavailable if no page becomes free."""
        try:
            await asyncio.wait_for(self._seats.acquire(), PATIENCE + 2)
        except TimeoutError:
            raise self._refused(web.HTTPServiceUnavailable, FULL) from None
        try:
            yield
        finally:
            self._seats.release()

    def _refused(self, kind: type[web.HTTPError], why: str) -> web.HTTPError:
        body = self._filled("refused.html", why=f"{why[0].upper()}{why[1:]}.")
        return kind(text=body, content_type="text/html")

    def _filled(self, name: str, **fields: str) -> str:
        """One of our pages, with these fields filled in."""
        text = Template((HERE / name).read_text(encoding="utf-8"))
        given = {field: html.escape(value) for field, value in fields.items()}
        return text.substitute(given, files=self._files)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        """Start the workbench of the page with this token."""
        if "Origin" not in request.headers or not self._visitors.take(request.match_info["token"]):
            raise self._refused(web.HTTPForbidden, KEYLESS)
        connection = web.WebSocketResponse(timeout=2, heartbeat=15, max_msg_size=MESSAGE_BYTES)
        async with self._seat():
            await connection.prepare(request)
            assert isinstance(request.protocol, Connection)
            request.protocol.stay()
            task = asyncio.create_task(self._attend(connection, request))
            self._open.add(task)
            try:
                await task
            finally:
                self._open.discard(task)
                await connection.close()
        return connection

    async def _attend(self, connection: web.WebSocketResponse, request: web.Request) -> None:
        width, height = (_cells(request, name) for name in ("width", "height"))
        try:
            await PageSession(self._words, connection).run(*fitting(width or 80, height or 24))
        except OSError as error:
            click.echo(
                f"tcw serve: a page's process could not be started: {error.strerror}", err=True
            )


async def _script(request: web.Request) -> web.FileResponse:
    return web.FileResponse(HERE / "page.js")


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    """Keep the page from being framed, cached or made to load from elsewhere. A connection serves
    one request, so the time limit covers all of it."""
    response.headers.update(HEADERS)
    if not isinstance(response, web.WebSocketResponse):
        response.force_close()


def _cells(request: web.Request, name: str) -> int:
    given = request.query.get(name, "")
    return int(given) if given.isdecimal() and len(given) < 5 else 0
