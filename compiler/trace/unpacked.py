"""A file as the bytes that were compressed into it: gzip, and zstd where Python can read it."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from typing import Any, BinaryIO, cast

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class UnknownCompression(Exception):
    """Nothing here reads this compression; the message says what to install."""


class _Unpacked(io.RawIOBase):
    """What a compressed stream holds, as far as it can be read."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._held = b""
        self.damaged = False
        """Whether the rest cannot be unpacked."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.damaged:
            try:
                data = self._stream.read(len(buffer))
            except (EOFError, OSError, zlib.error, ValueError, RuntimeError):
                self.damaged, data = True, b""
            buffer[: len(data)] = data
            return len(data)
        return 0

    def close(self) -> None:
        self._stream.close()
        super().close()


def unpacked(descriptor: int) -> BinaryIO:
    """The stream of what an open file holds, which it owns; not unpacked if it is not compressed.

    A damaged one ends where it cannot be unpacked further. Raises `UnknownCompression`.
    """
    file = io.FileIO(descriptor)
    try:
        magic = file.read(4)
        file.seek(0)
    except OSError:
        file.close()
        raise
    if magic.startswith(_GZIP):
        return cast(BinaryIO, _Unpacked(gzip.GzipFile(fileobj=file)))
    if magic == _ZSTD:
        return cast(BinaryIO, _Unpacked(_zstd(file)))
    return cast(BinaryIO, file)


def _zstd(file: io.FileIO) -> Any:
    for name in ("compression.zstd", "zstandard"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return module.open(file, "rb")
    file.close()
    raise UnknownCompression("it is compressed with zstd: unpack it, or `pip install zstandard`")


class Joined(io.RawIOBase):
    """Several streams, one after the other."""

    def __init__(self, streams: list[BinaryIO]) -> None:
        self._streams = streams
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self._at < len(self._streams):
            data = self._streams[self._at].read(len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            self._at += 1
        return 0

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        super().close()
