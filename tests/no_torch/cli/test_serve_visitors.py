"""`tcw serve`: who may come in. Other users and the pages of other sites reach it too."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.no_torch.cli.served import Served, served
from tests.no_torch.tui.conftest import block_file

pytest.importorskip("textual_serve")

import aiohttp
from aiohttp.test_utils import make_mocked_request

from tcw.workbench.web.connections import TOKENS, Visitors

__all__ = ["block_file"]


@pytest.fixture(scope="module")
def server(block_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(str(block_file), cache=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture
async def session() -> Any:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


WEB_SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
KEYLESS = {
    "no key": ("/", {}),
    "a wrong key": ("/?key=wrong", {}),
    "a key of another length": ("/?key=", {}),
    "a key that is not UTF-8": ("/?key=%ff%fe", {}),
    "the key in a cookie": ("/", {"Cookie": "tcw-{number}={key}; key={key}"}),
    "the key in a header": ("/", {"Authorization": "Bearer {key}"}),
    "the key of another path": ("/download/x?key={key}", {}),
    "the folder of files": ("/static/", {}),
    "a file by a guessed name": ("/static/js/textual.js", {}),
    "a path above": ("/static/../../server.py", {}),
    "no token": ("/ws", {"Origin": "{origin}", **WEB_SOCKET}),
    "a wrong token": ("/ws/wrong", {"Origin": "{origin}", **WEB_SOCKET}),
    "the key for a token": ("/ws/{key}?key={key}", {"Origin": "{origin}", **WEB_SOCKET}),
    "a token without an origin": ("/ws/{token}", WEB_SOCKET),
    "a token, another site": ("/ws/{token}", {"Origin": "http://evil.test", **WEB_SOCKET}),
    "a token, another port": ("/ws/{token}", {"Origin": "http://127.0.0.1:1", **WEB_SOCKET}),
    "a token, a port that begins like ours": ("/ws/{token}", {"Origin": "{origin}0", **WEB_SOCKET}),
    "a token, another name": ("/ws/{token}", {"Origin": "http://localhost:{number}", **WEB_SOCKET}),
    "a token, another scheme": ("/ws/{token}", {"Origin": "https://127.0.0.1:{number}"}),
    "a token, a page of no site": ("/ws/{token}", {"Origin": "null", **WEB_SOCKET}),
    "a token, another host": (
        "/ws/{token}",
        {"Host": "evil.test:{number}", "Origin": "http://evil.test:{number}", **WEB_SOCKET},
    ),
    "the key, another site": ("/?key={key}", {"Origin": "http://evil.test"}),
    "the key, a name that was pointed here": ("/?key={key}", {"Host": "evil.test:{number}"}),
    "the key, another port": ("/?key={key}", {"Host": "127.0.0.1:1"}),
    "the key, no port": ("/?key={key}", {"Host": "127.0.0.1"}),
    "the key, an odd host": ("/?key={key}", {"Host": "127.0.0.1:{number}:{number}"}),
}


@pytest.mark.parametrize("name", KEYLESS)
async def test_nobody_comes_in_without_the_key(name: str, server: Served, session: Any) -> None:
    path, headers = KEYLESS[name]
    key = server.address.partition("?key=")[2]
    fields = {"key": key, "number": str(server.number), "origin": server.origin}
    fields["token"] = await server.token(session)
    address = server.origin + path.format(**fields)
    given = {header: value.format(**fields) for header, value in headers.items()}
    alone = server.family()
    async with session.get(address, headers=given, allow_redirects=False) as answer:
        assert answer.status == 403
        text = await answer.text()
    assert "data-token" not in text
    assert key not in text
    assert server.family() == alone, "no workbench was started"


async def test_a_token_opens_one_page(server: Served, session: Any) -> None:
    token = await server.token(session)
    headers = {"Origin": server.origin}
    async with session.ws_connect(f"{server.site}ws/{token}", headers=headers) as page:
        await page.receive_bytes(timeout=60)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{server.site}ws/{token}", headers=headers)
    assert refused.value.status == 403


async def test_the_key_is_no_cookie_and_no_page_can_use_another(
    server: Served, session: Any
) -> None:
    async with session.get(server.address) as answer:
        assert answer.status == 200
        headers, text = answer.headers, await answer.text()
    assert "Set-Cookie" not in headers
    assert server.address.partition("?key=")[2] not in text
    assert "http" not in text, "it would load something from elsewhere"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy, "nothing inline runs"
    assert "frame-ancestors 'none'" in policy


HEADERS = {
    "a cookie that is not UTF-8": b"Cookie: tcw=\xff\xfe",
    "a cookie of an earlier version": b"Cookie: tcw-8000=\xff; a=b",
    "an origin that is not UTF-8": b"Origin: \xff\xfe",
    "a control character": b"X: \x00",
    "a name with a space": b"Bad Header: x",
    "two lengths": b"Content-Length: 3\r\nContent-Length: 4",
    "a length that is no number": b"Content-Length: x",
    "a length and chunks": b"Transfer-Encoding: chunked\r\nContent-Length: 3",
    "a long header": b"X: " + b"x" * 100_000,
    "many headers": b"\r\n".join(b"X%d: x" % number for number in range(1000)),
    "two hosts": b"Host: evil.test",
    "half an upgrade": b"Connection: upgrade\r\nUpgrade: \xff",
}
LINES = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "no host": b"GET / HTTP/1.0\r\n\r\n",
    "a host that is not UTF-8": b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
    "a port of many digits": b"GET / HTTP/1.1\r\nHost: localhost:" + b"9" * 8000 + b"\r\n\r\n",
    "a path that is not UTF-8": b"GET /\xff\xfe HTTP/1.1\r\nHost: %(host)s\r\n\r\n",
    "a long path": b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: %(host)s\r\n\r\n",
    "another method": b"CONNECT evil.test:80 HTTP/1.1\r\nHost: %(host)s\r\n\r\n",
    "another address": b"GET http://evil.test/ HTTP/1.1\r\nHost: %(host)s\r\n\r\n",
}


def test_a_malformed_request_ends_alone(block_file: Path, tmp_path: Path) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        host = server.origin.removeprefix("http://").encode()
        key = server.address.removeprefix(server.origin).encode()
        requests = {name: line.replace(b"%(host)s", host) for name, line in LINES.items()}
        for name, header in HEADERS.items():
            requests[name] = b"GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n" % (host, header)
        for name, request in requests.items():
            assert status(server.number, request) in (400, 403), name
        assert status(server.number, b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (key, host)) == 200
        assert server.interrupt() == 0
        assert server.rest() == "ctrl-c ends it\n", "a stranger writes nothing to the terminal"


def status(port: int, request: bytes) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        return int(connection.recv(1000).split()[1])


def visitors(host: str, bound: str) -> Visitors:
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    with socket.create_server((bound, 0), family=family) as listening:
        return Visitors(host, listening)


def lets_in(visitors: Visitors, name: str) -> bool:
    headers = {"Host": f"{name}:{visitors.number}"}
    return visitors.fault(make_mocked_request("GET", "/", headers)) is None


def test_on_this_machine_alone_it_goes_by_its_names() -> None:
    ours = visitors("127.0.0.1", "127.0.0.1")
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert lets_in(ours, name), name
    for name in ("127.0.0.2", "192.0.2.1", "evil.test", "localhost.evil.test", "[::2]", ""):
        assert not lets_in(ours, name), name


def test_at_a_name_that_was_given_it_goes_by_that_too() -> None:
    ours = visitors("Box.Example", "127.0.0.1")
    assert lets_in(ours, "box.example")
    assert not lets_in(ours, "evil.test")


def test_at_every_address_it_goes_by_addresses_and_the_machines_name() -> None:
    ours = visitors("0.0.0.0", "0.0.0.0")
    for name in ("192.0.2.1", "[2001:db8::1]", "localhost", socket.gethostname()):
        assert lets_in(ours, name), name
    assert not lets_in(ours, "evil.test"), "which can be pointed at any address"
    assert "0.0.0.0" not in ours.address


def test_tokens_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = visitors("127.0.0.1", "127.0.0.1")
    first = ours.new_token()
    later = [ours.new_token() for _ in range(TOKENS)]
    assert not ours.take(first), "there is a limit"
    assert ours.take(later[0])
    assert not ours.take(later[0])
    monkeypatch.setattr("tcw.workbench.web.connections.TOKEN_SECONDS", -1.0)
    assert not ours.take(ours.new_token()), "it came too late"
