"""Who may talk to the server: the hosts and origins it accepts, its key, a page's token.

A browser sends requests for any page that it shows, and sends a cookie to every port of a host, so
the key is not a cookie. The Host of a request has to be a name of this server (another site can
point a name of its own to this machine), and its Origin, if any, a page of this server.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
import time

from aiohttp import web

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
        found = _HOST.fullmatch(host)
        if found is None or int(found[2] or 80) != self.number:
            return False
        name = found[1].strip("[]")
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
