"""Opening a file that someone else may have put there: no FIFO hangs, no device is read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

SAFELY = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags for opening what may be special: without O_NONBLOCK a FIFO waits for its writer."""


class TooLarge(OSError):
    """The file has more bytes than its reader takes."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(errno.EFBIG, "it is too large", os.fspath(path))
        self.most = most

    def __str__(self) -> str:
        return f"{self.filename} has more than {self.most >> 20} MB"


class NotPlain(OSError):
    """The file is a folder, a FIFO, a device or a socket."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(errno.EINVAL, f"it is {what}, not a file", os.fspath(path))
        self.what = what

    def __str__(self) -> str:
        return f"{self.filename} is {self.what}, not a file"


def open_plain(path: Path, *, links: bool = True) -> int:
    """A descriptor of the file, for reading.

    `links`: whether a symbolic link is followed. Raises `NotPlain`, OSError, and ValueError if the
    name is not a valid file name.
    """
    refuse_special(path, os.stat(path, follow_symlinks=links).st_mode)
    descriptor = os.open(path, os.O_RDONLY | SAFELY | (0 if links else os.O_NOFOLLOW))
    try:
        refuse_special(path, os.fstat(descriptor).st_mode)  # it may have been replaced since
    except NotPlain:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def plain_file(path: Path, *, links: bool = True) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    """The file opened as by `open_plain`, and the `stat` of exactly that file."""
    descriptor = open_plain(path, links=links)
    with open(descriptor, "rb") as stream:
        yield stream, os.fstat(descriptor)


def read_plain(path: Path, most: int) -> bytes:
    """All of a file of at most `most` bytes. Raises what `open_plain` raises, and `TooLarge`."""
    with plain_file(path) as (stream, _):
        return read_at_most(stream, path, most)


def read_at_most(stream: BinaryIO, path: Path, most: int) -> bytes:
    """The rest of an open file, which is `path` in errors. Raises `TooLarge`."""
    found = stream.read(most + 1)
    if len(found) > most:
        raise TooLarge(path, most)
    return found


def refuse_special(path: Path, mode: int) -> None:
    """Raise `NotPlain` if a file of this mode is not a regular file."""
    if what := special(mode):
        raise NotPlain(path, what)


def special(mode: int) -> str:
    """What a file of this mode is if not a regular file: `a pipe (FIFO)`; "" for a regular one."""
    if stat.S_ISREG(mode):
        return ""
    return next((words for is_one, words in _KINDS if is_one(mode)), "a special file")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
