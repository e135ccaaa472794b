"""Who may talk to the server, over how many connections, and for how long.

aiohttp limits neither the number of connections nor how long a slow client takes. A browser sends
requests for any page that it shows, and sends a cookie to every port of a host, so the key is not a
cookie. The Host of a request has to be a name of this server (another site can point a name of its
own to this machine), and its Origin, if any, a page of this server.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import re
import secrets
import socket
import time
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


TOKEN_SECONDS = 60.0
"""Seconds a page may take from loading its HTML to opening its web socket."""
TOKENS = 64
"""How many pages may be at that point at once."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")


class Visitors:
    """Checks requests for the server that listens at `number`, a port of the address `host`."""

    def __init__(self, host: str, listening: socket.socket) -> None:
        bound, self.number = listening.getsockname()[:2]
        self._names = {"localhost", "127.0.0.1", "::1", host.lower(), bound}
        self._everywhere = ipaddress.ip_address(bound).is_unspecified
        """Whether it listens on every address of the machine."""
        if self._everywhere:
            self._names.add(socket.gethostname().lower())
        self._shown = socket.gethostname() if self._everywhere else bound
        self._key = secrets.token_urlsafe(16)
        self._tokens: dict[str, float] = {}

    @property
    def address(self) -> str:
        """The address to open in the browser, with the key."""
        host = f"[{self._shown}]" if ":" in self._shown else self._shown
        return f"http://{host}:{self.number}/?key={self._key}"

    def fault(self, request: web.Request) -> str | None:
        """Why the Host or Origin of the request is refused, or None."""
        hosts = request.headers.getall("Host", [])
        if len(hosts) != 1 or not self._is_ours(hosts[0].lower()):
            return (
                f"this is tcw serve on port {self.number}, and the request is for another host "
                "or port: open the address that tcw serve printed; a forwarded port must keep "
                "its number"
            )
        origins = request.headers.getall("Origin", [])
        if any(origin != f"http://{hosts[0].lower()}" for origin in origins):
            return "the request comes from another site's page"
        return None

    def _is_ours(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None or int(match[2] or 80) != self.number:
            return False
        name = match[1].strip("[]")
        # Unlike a name, an address cannot be made to point elsewhere.
        return name in self._names or (self._everywhere and _is_address(name))

    def has_key(self, request: web.Request) -> bool:
        given = request.query.get("key", "")
        return hmac.compare_digest(given.encode(errors="replace"), self._key.encode())

    def new_token(self) -> str:
        """A one-time token with which one page opens its web socket."""
        token = secrets.token_urlsafe(16)
        self._tokens[token] = time.monotonic() + TOKEN_SECONDS
        while len(self._tokens) > TOKENS:
            del self._tokens[next(iter(self._tokens))]
        return token

    def take(self, token: str) -> bool:
        """Whether the token was issued and is unused; it counts as used from now on."""
        return self._tokens.pop(token, 0.0) > time.monotonic()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
