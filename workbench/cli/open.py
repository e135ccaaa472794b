"""Look into a recorded trace in the terminal.

FILE is a trace that `tcw explain --trace FILE` wrote; it may still be growing. Everything is read
from the file alone, so a trace from another machine opens as well.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import click

from compiler.trace.reader import TraceDecoder, TraceError, open_trace
from workbench.cli.files import existing_file
from workbench.cli.options import ascii_option, questions_option

HEAD_BYTES = 1 << 16


@click.command(name="open", help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--predict", is_flag=True, help="Guess each fusion before it is shown; a score ends it."
)
@click.option(
    "--view-only",
    is_flag=True,
    help="Never run anything: compiling again from this trace is off.",
)
@questions_option
@ascii_option
def command(file: Path, predict: bool, view_only: bool, questions: int, ascii_only: bool) -> int:
    check(file)
    if not (sys.stdin.isatty() and sys.stderr.isatty()) and "TEXTUAL_DRIVER" not in os.environ:
        raise click.UsageError("tcw open needs a terminal: its input or output is redirected")
    gc.disable()  # modules live as long as we do: the collector would go through them in vain
    from workbench.tui.app import run

    gc.freeze()
    gc.enable()
    return run(file, predict=predict, questions=questions, ascii_only=ascii_only)


def check(file: Path) -> None:
    """Fail with one clear line where `file` is not there, no trace, or of a newer schema."""
    existing_file(file)
    decoder = TraceDecoder()
    try:
        with open_trace(file) as stream:
            head = stream.read(HEAD_BYTES)
        records = decoder.feed(head)
    except TraceError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error
    if not records and decoder.start is None and not _may_grow(head):
        hint = f"; did you mean 'tcw explain {file}'?" if file.suffix == ".py" else ""
        raise click.UsageError(f"{file} is no tcw trace: none of its first lines is a record{hint}")


def _may_grow(head: bytes) -> bool:
    """A recording that has just begun: empty, or in the middle of its first line."""
    return head.startswith(b'{"record"') or not head
