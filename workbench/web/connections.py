"""How many connections may be open, and for how long one that is no workbench.

aiohttp bounds neither their number nor the time that a slow client may take.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from aiohttp import web

CONNECTIONS = 64
"""Open at once, those of the pages included."""
SECONDS = 30.0
"""For a request and its response, however slow the other side is."""
CROWDED = "tcw serve has too many open connections: reload this page in a minute\n"
REFUSAL_SECONDS = 1.0
_REFUSAL = (
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
    f"Content-Type: text/plain\r\nContent-Length: {len(CROWDED)}\r\n\r\n{CROWDED}"
).encode()

_silent = logging.Logger("tcw serve", logging.CRITICAL)
"""Requests that are malformed are answered with 400; the terminal is not a stranger's to fill."""


class Connection(web.RequestHandler):
    """A connection that is cut after a time, unless it is a page's."""

    __slots__ = ("_deadline",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cut = cast(asyncio.Transport, transport).abort
        self._deadline = asyncio.get_running_loop().call_later(SECONDS, cut)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    def stay(self) -> None:
        """It is a page's now: it stays open until either side closes it."""
        self._deadline.cancel()


class Connections:
    """Accepts the connections of a server."""

    def __init__(self, server: web.Server) -> None:
        self._server = server
        self._refusals: set[_Refusal] = set()

    def accept(self) -> asyncio.Protocol:
        """The protocol of a connection that is being made."""
        if len(self._server.connections) < CONNECTIONS:
            settings: dict[str, Any] = {"access_log": None, "logger": _silent}
            loop = asyncio.get_running_loop()
            return Connection(self._server, loop=loop, lingering_time=1.0, **settings)
        return _Refusal(self._refusals)


class _Refusal(asyncio.Protocol):
    """Answers one request with the reason why it is refused; when there are many, none."""

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
