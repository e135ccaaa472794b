"""One workbench: the process behind one open page, and the traffic between the two.

The process runs a `PageDriver`. Its stdin and stdout carry packets: a letter, the length of
the payload in four bytes, big-endian, and the payload. The letters are D (terminal data), M (JSON)
and P (a part of a download, which the workbench never sends).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

import click
import msgspec
from aiohttp import WSMsgType, web

from tcw.viewers.plain import plain_lines
from tcw.workbench import own_command

MESSAGE_BYTES = 1 << 20
"""The longest message, characters: a paste of a megabyte."""
WIDEST, TALLEST = 1000, 500
"""The largest terminal, in cells; a larger window is only partly drawn."""


class BadMessage(ValueError):
    """A message that our pages never send."""


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag=str.lower):
    """A JSON array whose first element is the name of the type."""


class Stdin(_Message):
    """Keys, mouse events and pastes, as a terminal sends them."""

    text: str


class TerminalSize(msgspec.Struct, forbid_unknown_fields=True):
    """Size of the terminal, in cells."""

    width: int
    height: int


class Resize(_Message):
    """The terminal has a new size."""

    size: TerminalSize


class Ping(_Message):
    """The page measures the round-trip time."""

    text: str


class Focus(_Message):
    """The terminal got the focus."""


class Blur(_Message):
    """The terminal lost the focus."""


_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"

Message = Stdin | Resize | Ping | Focus | Blur

_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def decode(text: str) -> Message:
    """The message in `text`. Raises BadMessage."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadMessage(str(error)) from error


class Typed:
    """What one page has sent as its terminal's input."""

    def __init__(self) -> None:
        self._tail = ""

    def add(self, text: str) -> None:
        """Raises BadMessage at a paste without an end, which our pages send whole: the workbench
        would take all later input as a part of it."""
        seen = self._tail + text
        if seen.rfind(_PASTE_BEGINS) > seen.rfind(_PASTE_ENDS):
            raise BadMessage("a paste without an end")
        self._tail = seen[1 - len(_PASTE_BEGINS) :]


def fitting(width: int, height: int) -> tuple[int, int]:
    """The size of the terminal that is drawn in a window of `width` × `height` cells."""
    return min(max(width, 2), WIDEST), min(max(height, 2), TALLEST)


PATIENCE = 8.0
"""Seconds for a workbench to end its worker and itself before it is killed."""
LEFT_OPEN = 1.0
"""Seconds for reading a process's pipes to their end after it has exited."""
READY = b"__GANGLION__\n"
"""The line after which `WebDriver` writes packets."""
ERROR_BYTES = 1 << 13
"""How much of the end of a process's stderr is shown, bytes."""


class PageSession:
    """One workbench. `run` starts its process and leaves nothing behind."""

    def __init__(self, words: Sequence[str], connection: web.WebSocketResponse) -> None:
        self._words = words
        self._connection = connection

    async def run(self, width: int, height: int) -> None:
        """Relay input and output until either side ends."""
        process = await self._start(width, height)
        shown = asyncio.create_task(self._show(process))
        errors = asyncio.create_task(_end_of(process.stderr))
        try:
            await self._pass_on(process)
        finally:
            await _stop(process)
            # A child of the process may keep its pipes open.
            done, open_still = await asyncio.wait({shown, errors}, timeout=LEFT_OPEN)
            for task in open_still:
                task.cancel()
            if errors in done:
                _report(errors.result())

    async def _start(self, width: int, height: int) -> Process:
        """Start the process in its own session, so that only the server gets ctrl-c."""
        return await asyncio.create_subprocess_exec(
            *own_command("--page", str(os.getpid()), *self._words),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={
                **os.environ,
                "TEXTUAL_DRIVER": "tcw.workbench.web.driver:PageDriver",
                "TEXTUAL_COLOR_SYSTEM": "truecolor",
                "COLUMNS": str(width),
                "ROWS": str(height),
            },
            start_new_session=True,
        )

    async def _pass_on(self, process: Process) -> None:
        """Relay from the page to the process. A message that our pages never send ends the page."""
        typed = Typed()
        async for received in self._connection:
            try:
                if received.type is not WSMsgType.TEXT:
                    raise BadMessage("not a text")
                message = decode(received.data)
                if isinstance(message, Stdin):
                    typed.add(message.text)
            except BadMessage:
                await self._connection.close(code=1008, message=b"not a message of this page")
                return
            with contextlib.suppress(ConnectionError):  # `_show` notices its end
                await self._obey(message, process)

    async def _obey(self, message: Message, process: Process) -> None:
        match message:
            case Stdin(text):
                if text:  # the workbench reads nothing after an empty packet
                    await _write(process, b"D", text.encode())
            case Resize(size):
                width, height = fitting(size.width, size.height)
                await _write_meta(process, {"type": "resize", "width": width, "height": height})
            case Ping(text):
                await self._connection.send_json(["pong", text])
            case Focus():
                await _write_meta(process, {"type": "focus"})
            case Blur():
                await _write_meta(process, {"type": "blur"})

    async def _show(self, process: Process) -> None:
        """Relay from the process to the page until the process ends. Never wait for a page that is
        gone: a process that could not write could not end either."""
        out = process.stdout
        assert out is not None
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await out.readuntil(READY)
            while True:
                kind, size = await out.readexactly(1), await out.readexactly(4)
                payload = await out.readexactly(int.from_bytes(size, "big"))
                if kind == b"D" and not self._connection.closed:
                    with contextlib.suppress(ConnectionError, RuntimeError):
                        await self._connection.send_bytes(payload)
                elif kind == b"M" and json.loads(payload).get("type") == "exit":
                    await self._connection.close()
        await self._connection.close()


async def _stop(process: Process) -> None:
    """Ask the process to end; kill it if it does not, or if it cannot be waited for."""
    try:
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                await _write_meta(process, {"type": "quit"})
            await process.wait()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # `kill` would take asyncio's exit status
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), LEFT_OPEN)


async def _write_meta(process: Process, fields: dict[str, str | int]) -> None:
    await _write(process, b"M", json.dumps(fields).encode())


async def _write(process: Process, kind: bytes, payload: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(kind + len(payload).to_bytes(4, "big") + payload)
    await process.stdin.drain()


async def _end_of(stream: asyncio.StreamReader | None) -> str:
    """The last bytes written to `stream`."""
    assert stream is not None
    kept = b""
    while data := await stream.read(ERROR_BYTES):
        kept = (kept + data)[-ERROR_BYTES:]
    return kept.decode(errors="replace").strip()


def _report(errors: str) -> None:
    """Show in the server's terminal what a page's process wrote to stderr."""
    if errors:
        with contextlib.suppress(OSError):
            click.echo("\n".join(plain_lines(errors)), err=True)
