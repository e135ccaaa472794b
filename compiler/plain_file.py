"""Opening a file that someone else may have put there: no FIFO hangs, no device is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class NotPlain(OSError):
    """It is a folder, a FIFO, a device or a socket."""


@contextmanager
def plain_file(path: Path, *, links: bool = True) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    """The file open for reading, and what the system says of just that file.

    `links`: whether a symbolic link is followed. Raises `NotPlain`, OSError, and ValueError where
    the name cannot be one of a file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    number = os.open(path, flags)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise NotPlain(f"{path} is no plain file")
        with open(number, "rb", closefd=False) as stream:
            yield stream, found
    finally:
        os.close(number)
