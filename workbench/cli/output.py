"""stdout: how much room it has, and a reader that may leave (`tcw explain … | head`)."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator


def room() -> tuple[int, int]:
    """Columns and lines to write for: those of the terminal, within what our texts are made for."""
    size = shutil.get_terminal_size((100, 40))
    return max(80, min(size.columns, 300)), size.lines if sys.stdout.isatty() else 40


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Whatever is written to stdout inside is written, or dropped where nobody reads it."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):
            # What Python still holds back would fail again, and loudly, when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
