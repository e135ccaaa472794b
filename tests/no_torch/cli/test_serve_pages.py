"""`tcw serve`: what a page may send, how many there may be, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from tcw.workbench.web.session import BadMessage, decode
from tests.long import mostly_long
from tests.no_torch.cli.served import Served, gone, served, until
from tests.no_torch.tui.conftest import block_file

pytest.importorskip("textual_serve")

import aiohttp

__all__ = ["block_file"]

DEEP = "[" * 100_000


async def ended(page: Any) -> int | None:
    """The code with which the server ends this page."""
    async with asyncio.timeout(60):
        while not page.closed:
            await page.receive()
    code: int | None = page.close_code
    return code


async def shown(page: Any, words: bytes) -> None:
    seen = b""
    while words not in seen:
        seen += await page.receive_bytes(timeout=60)


async def test_a_page_is_a_process_that_ends_with_it_and_with_the_server(
    block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession() as session:
            alone = server.family()
            async with await server.workbench(session) as page:
                await shown(page, b"overview")
                assert server.family() - alone
            assert until(lambda: server.family() == alone)
            async with await server.workbench(session) as page:
                await page.receive_bytes(timeout=60)
                everyone = server.family()
                assert len(everyone) > len(alone)
                assert server.interrupt() == 0
                assert gone(everyone)
        assert server.rest() == "ctrl-c ends it\n"


@pytest.mark.usefixtures("hangups")
@pytest.mark.parametrize(
    "how", mostly_long((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP), (signal.SIGKILL,))
)
async def test_pages_end_with_a_server_that_is_killed(
    how: signal.Signals, block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession() as session:
            pages = [await server.workbench(session) for _ in range(3)]
            await shown(pages[0], b"overview")
            assert until(lambda: len(server.family()) == 4)  # two have just started
            everyone = server.family()
            server.process.send_signal(how)
            assert gone(everyone)
            for page in pages:
                await ended(page)


MESSAGES = {
    "deeply nested": DEEP,
    "deeply nested text": f'["stdin",{DEEP}',
    "a deeply nested size": '["resize",' + '{"width":' * 100_000,
    "deeply nested, after the text": f'["stdin","x",{DEEP}',
    "no JSON": "{",
    "nothing": "",
    "no list": "null",
    "an empty list": "[]",
    "another type": '["quit"]',
    "a number for text": '["stdin",1]',
    "an element too many": '["stdin","x",1]',
    "a size with another field": '["resize",{"width":1,"height":1,"depth":1}]',
    "half a character": '["stdin","\\ud800"]',
    "a size without a height": '["resize",{"width":1}]',
    "a size that is no number": '["resize",{"width":"1","height":"1"}]',
    "a size of many digits": '["resize",{"width":' + "9" * 5000 + ',"height":1}]',
    "too long": f'["stdin","{"x" * (1 << 20)}"]',
    "bytes": b"\xff\xfe",
}


SENT = ("deeply nested", "too long", "bytes")
"""Messages that a server gets, each on a page of its own, which is a process: those that are
refused in different places."""


@pytest.mark.parametrize("name", [name for name in MESSAGES if name not in ("too long", "bytes")])
def test_a_bad_message_is_not_decoded(name: str) -> None:
    message = MESSAGES[name]
    assert isinstance(message, str)
    with pytest.raises(BadMessage):
        decode(message)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(SENT, id="some"),
        pytest.param(tuple(MESSAGES), id="all", marks=pytest.mark.long),
    ],
)
async def test_a_bad_message_ends_its_page_alone(
    names: tuple[str, ...], block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession() as session:
            alone = server.family()
            other = await server.workbench(session)
            await shown(other, b"overview")
            kept = server.family()
            for name in names:
                message = MESSAGES[name]
                page = await server.workbench(session)
                if isinstance(message, str):
                    await page.send_str(message)
                else:
                    await page.send_bytes(message)
                assert await ended(page) == (1009 if name == "too long" else 1008), name
            assert until(lambda: server.family() == kept), "each process went with its page"
            await other.send_str('["stdin","?"]')
            await shown(other, b"What needs attention")
            await other.close()
            assert until(lambda: server.family() == alone)
        assert server.interrupt() == 0
        assert server.rest() == "ctrl-c ends it\n", "no traceback"


async def test_a_paste_without_an_end_ends_its_page(block_file: Path, tmp_path: Path) -> None:
    """The process would take all that follows as a part of it, and listen to nothing."""
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession() as session:
            for texts in (["\x1b[200~and so on"], ["\x1b[2", "00", "~"], ["a\x1b[201~\x1b[200~"]):
                page = await server.workbench(session)
                await shown(page, b"overview")
                for text in texts:
                    await page.send_json(["stdin", text])
                assert await ended(page) == 1008, texts


async def test_a_whole_paste_and_an_empty_message_leave_the_page_alive(
    block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession() as session:
            page = await server.workbench(session)
            await shown(page, b"overview")
            for text in ("", "\x1b[200~pasted\x1b[201~", "\x1b[200~\x1b[200~\x1b[201~", "", "?"):
                await page.send_json(["stdin", text])
            await shown(page, b"What needs attention")


async def test_a_frame_that_is_not_utf_8_ends_its_page_alone(
    block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession() as session:
            alone = server.family()
            page = await server.workbench(session)
            await page._writer.send_frame(b"\xff\xfe", aiohttp.WSMsgType.TEXT)
            assert await ended(page) == 1007
            assert until(lambda: server.family() == alone)
        assert server.interrupt() == 0
        assert server.rest() == "ctrl-c ends it\n"


async def test_an_enormous_terminal_is_drawn_in_part(block_file: Path, tmp_path: Path) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        async with aiohttp.ClientSession() as session:
            page = await server.workbench(session)
            await shown(page, b"overview")
            await page.send_str('["resize",{"width":1000000000,"height":-1000000000}]')
            await page.send_str('["resize",{"width":100,"height":30}]')
            await page.send_str('["stdin","?"]')
            await shown(page, b"What needs attention")
            await page.close()


async def test_pages_have_a_limit(block_file: Path, tmp_path: Path) -> None:
    changes = "server.PAGES = 2; server.PATIENCE = -1"
    with served(str(block_file), cache=tmp_path, changes=changes) as server:
        async with aiohttp.ClientSession() as session:
            first, second = [await server.workbench(session) for _ in range(2)]
            for page in (first, second):
                await shown(page, b"overview")
            full = server.family()
            async with session.get(server.address) as answer:
                assert answer.status == 503
                assert "close one and reload this one" in await answer.text()
            assert server.family() == full
            await first.close()
            assert until(lambda: server.family() < full)
            await (await server.workbench(session)).receive_bytes(timeout=60)


async def test_a_page_that_is_reloaded_finds_its_place(block_file: Path, tmp_path: Path) -> None:
    """The page that it was may still be ending."""
    with served(str(block_file), cache=tmp_path, changes="server.PAGES = 1") as server:
        async with aiohttp.ClientSession() as session:
            for _ in range(3):
                page = await server.workbench(session)
                await page.receive_bytes(timeout=60)
                reloaded = asyncio.create_task(server.workbench(session))
                await page.close()
                await shown(await reloaded, b"overview")
                await (await reloaded).close()


async def test_a_page_that_leaves_while_it_waits_for_a_place(
    block_file: Path, tmp_path: Path
) -> None:
    with served(str(block_file), cache=tmp_path, changes="server.PAGES = 1") as server:
        async with aiohttp.ClientSession() as session:
            token = await server.token(session)
            page = await server.workbench(session)
            await page.receive_bytes(timeout=60)
            address = f"{server.site}ws/{token}"
            late = session.ws_connect(address, headers={"Origin": server.origin})
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(late, 1)
            await page.close()
            await (await server.workbench(session)).receive_bytes(timeout=60)
        assert server.interrupt() == 0
        assert server.rest() == "ctrl-c ends it\n"


def test_connections_have_a_limit(block_file: Path, tmp_path: Path) -> None:
    with served(str(block_file), cache=tmp_path) as server:
        idle = [socket.create_connection(("127.0.0.1", server.number)) for _ in range(500)]
        try:
            assert until(lambda: b"too many open connections" in answer_of(server))
            assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < 200
        finally:
            for connection in idle:
                connection.close()
        assert until(lambda: answer_of(server).startswith(b"HTTP/1.1 403 "))
        assert server.interrupt() == 0
        assert server.rest() == "ctrl-c ends it\n"


def answer_of(server: Served) -> bytes:
    host = server.origin.removeprefix("http://")
    with socket.create_connection(("127.0.0.1", server.number), timeout=30) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        try:
            return connection.recv(1000)
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    "sent",
    ["", "GET / HTTP/1.1\r\nHost: ", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"],
)
def test_a_connection_that_never_asks_is_cut(sent: str, block_file: Path, tmp_path: Path) -> None:
    with (
        served(str(block_file), cache=tmp_path, changes="connections.SECONDS = 1.0") as server,
        socket.create_connection(("127.0.0.1", server.number), timeout=30) as connection,
        contextlib.suppress(ConnectionResetError),
    ):
        connection.sendall(sent.encode())
        while connection.recv(1000):
            pass


ONE_SLOW_CONNECTION = """
import socket
connections.SECONDS = 5.0
connections.CONNECTIONS = 1
made = connections.Connection.connection_made

def with_a_small_buffer(self, transport):
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    made(self, transport)

connections.Connection.connection_made = with_a_small_buffer
"""


async def test_a_download_that_is_not_read_is_cut(block_file: Path, tmp_path: Path) -> None:
    with served(str(block_file), cache=tmp_path, changes=ONE_SLOW_CONNECTION) as server:
        async with aiohttp.ClientSession() as session:
            async with session.get(server.address) as answer:
                match = re.search(r'src="(/\w+/static/js/textual.js)"', await answer.text())
            assert match is not None
            async with session.get(f"{server.origin}{match[1]}") as answer:
                whole = await answer.read()
        host = server.origin.removeprefix("http://")
        request = f"GET {match[1]} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        reading: list[socket.socket] = []

        def begins() -> bool:
            """Where the connection before has ended."""
            slow = socket.socket()
            reading.append(slow)
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(30)
            slow.connect(("127.0.0.1", server.number))
            with contextlib.suppress(ConnectionResetError):
                slow.sendall(request)
                return slow.recv(12) == b"HTTP/1.1 200"
            return False

        assert until(begins)
        assert until(lambda: answer_of(server).startswith(b"HTTP/1.1 403 ")), "its place is free"
        assert len(rest_of(reading[-1])) < len(whole)
        for connection in reading:
            connection.close()
        assert server.interrupt() == 0
        assert server.rest() == "ctrl-c ends it\n"


def rest_of(connection: socket.socket) -> bytes:
    read = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(1 << 16):
            read += more
    return read


async def test_a_page_outlasts_the_limit_of_a_connection(block_file: Path, tmp_path: Path) -> None:
    with served(str(block_file), cache=tmp_path, changes="connections.SECONDS = 5.0") as server:
        async with aiohttp.ClientSession() as session:
            page = await server.workbench(session)
            await shown(page, b"overview")
            await asyncio.sleep(6)
            await page.send_str('["stdin","?"]')
            await shown(page, b"What needs attention")
            await page.close()
