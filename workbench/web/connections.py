"""Limits on open connections, and on the time that one without a workbench may take.

aiohttp limits neither their number nor how long a slow client takes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast
from weakref import WeakSet

from aiohttp import web

CONNECTIONS = 64
"""Connections open at once, pages included."""
SECONDS = 30.0
"""Seconds for a request and its response, however slow the client is."""
CROWDED = "tcw serve has too many open connections: reload this page in a minute\n"
REFUSAL_SECONDS = 1.0
_REFUSAL = (
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
    f"Content-Type: text/plain\r\nContent-Length: {len(CROWDED)}\r\n\r\n{CROWDED}"
).encode()

_silent = logging.Logger("tcw serve", logging.CRITICAL)
"""Malformed requests get a 400. Logging them would let strangers fill the terminal."""


class Loop(asyncio.SelectorEventLoop):
    """A loop without `sendfile`, so that aiohttp writes files piece by piece.

    asyncio (3.11 to 3.13) prints tracebacks where a connection is aborted during a `sendfile`.
    """

    async def sendfile(self, *_: Any, **__: Any) -> int:
        raise NotImplementedError


class Connection(web.RequestHandler):
    """A connection that is cut after a time limit, unless a page uses it."""

    __slots__ = ("__weakref__", "_deadline", "_open")

    def __init__(self, server: web.Server, open_: WeakSet[Connection], **settings: Any) -> None:
        super().__init__(server, **settings)
        self._open = open_
        open_.add(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cut = cast(asyncio.Transport, transport).abort
        self._deadline = asyncio.get_running_loop().call_later(SECONDS, cut)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._deadline.cancel()
        self._open.discard(self)
        super().connection_lost(exc)

    def stay(self) -> None:
        """Hand the connection to a page: it stays open until either side closes it."""
        self._deadline.cancel()


class Connections:
    """Accepts the connections of a server."""

    def __init__(self, server: web.Server) -> None:
        self._server = server
        self._open: WeakSet[Connection] = WeakSet()
        """From `accept` on: several are accepted before the first is connected."""
        self._refusals: set[_Refusal] = set()

    def accept(self) -> asyncio.Protocol:
        """The protocol for a new connection."""
        if len(self._open) < CONNECTIONS:
            settings: dict[str, Any] = {"access_log": None, "logger": _silent}
            loop = asyncio.get_running_loop()
            return Connection(self._server, self._open, loop=loop, lingering_time=1.0, **settings)
        return _Refusal(self._refusals)


class _Refusal(asyncio.Protocol):
    """Replies to one request with the reason for its refusal; with too many connections, just
    closes."""

    def __init__(self, others: set[_Refusal]) -> None:
        self._others = others

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._others) >= CONNECTIONS:
            self._transport.abort()
            return
        self._others.add(self)
        asyncio.get_running_loop().call_later(REFUSAL_SECONDS, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._transport.write(_REFUSAL)
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
