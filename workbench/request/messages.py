"""The standard streams: always open, and writing to one never fails."""

from __future__ import annotations

import contextlib
import io
import os
import select
import shutil
import sys
from typing import Any, TextIO


class _Stream(io.FileIO):
    """Writes to a descriptor and remembers why a write failed."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        while self.failure is None:
            try:
                written = super().write(data)
            except OSError as error:
                self.failure = error
                break
            if written is not None:
                return written
            select.select([], [self], [])  # our parent made the stream non-blocking
        return memoryview(data).nbytes


class Standard:
    """Replaces this process's standard streams.

    Streams that the shell closed are opened on /dev/null; otherwise the next files opened would
    get their numbers. A reader that leaves (`tcw explain … | head`) and a full disk end the
    output, not the run.
    """

    def __init__(self) -> None:
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if sys.stdin is None:
            sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
            sys.__stdin__ = sys.stdin  # type: ignore[misc]
        self._out = _Stream(1, "wb", closefd=False)
        sys.stdout = _text(self._out, sys.stdout)
        sys.stderr = _text(_Stream(2, "wb", closefd=False), sys.stderr)
        sys.__stdout__ = sys.__stdout__ or sys.stdout  # type: ignore[misc]
        sys.__stderr__ = sys.__stderr__ or sys.stderr  # type: ignore[misc]

    def lost(self) -> str:
        """Why part of stdout was lost; "" if nothing was, or if its reader left."""
        sys.stdout.flush()
        failure = self._out.failure
        return (
            ""
            if failure is None or isinstance(failure, BrokenPipeError)
            else failure.strerror or "?"
        )


def _text(raw: _Stream, before: TextIO | None) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors=before.errors if before is not None else "backslashreplace",
        line_buffering=raw.isatty() or raw.fileno() == 2,
    )


def room() -> tuple[int, int]:
    """Columns and lines to write for: the terminal's, within the limits of our layouts."""
    size = shutil.get_terminal_size((100, 40))
    return max(80, min(size.columns, 300)), size.lines if sys.stdout.isatty() else 40


def say(message: str) -> None:
    """Write a message to stderr, each line escaped for the terminal."""
    from tcw.viewers.plain import fit_encoding, plain_lines

    encoding = sys.stderr.encoding or "ascii"
    with contextlib.suppress(OSError, ValueError):
        for index, row in enumerate(plain_lines(message)):
            print(fit_encoding(row if index else f"tcw: {row}", encoding), file=sys.stderr)


def write_json(value: Any) -> None:
    """Write a value to stdout as JSON, escaped where the stream's encoding requires it."""
    from tcw.viewers.json_text import json_text

    sys.stdout.write(json_text(value, encoding=sys.stdout.encoding or "utf-8"))


def write_markdown(text: str) -> None:
    """Write a report to stdout, with replacements where the stream's encoding requires them."""
    from tcw.viewers.plain import fit_encoding

    sys.stdout.write(fit_encoding(text, sys.stdout.encoding or "utf-8"))
