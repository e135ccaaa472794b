"""stdout, whose reader may have left: `tcw explain … | head` ends as if all had been read."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


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
