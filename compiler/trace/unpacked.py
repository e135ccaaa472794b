"""A file as the bytes that were compressed into it: gzip, and zstd where Python can read it."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, cast

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 20
_PIECE = 512
"""Packed bytes at a time of a format of which four bytes can stand for 128 KB."""


class UnknownCompression(Exception):
    """Nothing here reads this compression; the message says what to install."""


class _Stream(io.RawIOBase):
    """A stream that ends early where the rest is damaged."""

    damaged = False
    """Whether it has ended early."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.some(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def some(self, size: int) -> bytes:
        """At most this many of the next bytes; b"" at the end."""
        raise NotImplementedError


class _Gzip(_Stream):
    """What a gzip file holds, member after member."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._members = gzip.GzipFile(fileobj=file)

    def some(self, size: int) -> bytes:
        try:
            return b"" if self.damaged else self._members.read1(size)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.damaged = True
            return b""

    def close(self) -> None:
        self._file.close()
        super().close()


class _Zstd(_Stream):
    """What a zstd file holds, frame after frame. `begin` makes a decompressor of one frame."""

    def __init__(self, file: io.FileIO, begin: Callable[[], Any]) -> None:
        self._file = file
        self._begin = begin
        self._frame = begin()
        self._packed = b""
        self._at = 0
        self._held = b""

    def some(self, size: int) -> bytes:
        while not self._held and not self.damaged:
            piece = self._piece()
            if not piece:
                self.damaged = not self._frame.eof
                break
            if self._frame.eof:
                self._frame = self._begin()
            try:
                self._held = self._frame.decompress(piece)
            except Exception:  # each module has errors of its own
                self.damaged = True
                break
            if self._frame.eof:
                self._at -= len(self._frame.unused_data)
        data, self._held = self._held[:size], self._held[size:]
        return data

    def _piece(self) -> bytes:
        """The next packed bytes, so few that they cannot unpack to more than some megabytes."""
        if self._at >= len(self._packed):
            self._packed, self._at = self._file.read(_CHUNK) or b"", 0
        piece = self._packed[self._at : self._at + _PIECE]
        self._at += len(piece)
        return piece

    def close(self) -> None:
        self._file.close()
        super().close()


class Joined(_Stream):
    """Several streams, one after the other."""

    def __init__(self, streams: list[BinaryIO]) -> None:
        self._streams = streams
        self._at = 0

    def some(self, size: int) -> bytes:
        while self._at < len(self._streams):
            stream = self._streams[self._at]
            if data := stream.read(size):
                return data
            self.damaged = self.damaged or ends_early(stream)
            self._at += 1
        return b""

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        super().close()


def ends_early(stream: object) -> bool:
    """Whether a stream that was read to its end lacks the rest of what was compressed."""
    return isinstance(stream, _Stream) and stream.damaged


def unpacked(descriptor: int) -> BinaryIO:
    """The stream of what an open file holds, which it owns; not unpacked if it is not compressed.

    A damaged one ends where it cannot be unpacked further. Raises `UnknownCompression`.
    """
    file = io.FileIO(descriptor)
    try:
        magic = file.read(4) or b""
        file.seek(0)
    except OSError:
        file.close()
        raise
    if magic.startswith(_GZIP):
        return cast(BinaryIO, _Gzip(file))
    if magic == _ZSTD:
        return cast(BinaryIO, _zstd(file))
    return cast(BinaryIO, file)


def _zstd(file: io.FileIO) -> _Stream:
    for name in ("compression.zstd", "zstandard"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        maker = module.ZstdDecompressor
        begin = maker if name != "zstandard" else lambda make=maker: make().decompressobj()
        return _Zstd(file, begin)
    file.close()
    raise UnknownCompression("it is compressed with zstd: unpack it, or `pip install zstandard`")
