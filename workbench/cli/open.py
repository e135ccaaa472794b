"""Look into a recorded trace in the terminal.

FILE is a trace that `tcw explain --trace FILE` wrote; it may still be growing. Everything is read
from the file alone, so a trace from another machine opens as well.

Opening runs nothing. Compiling the recorded file again (`v`, `f`, `w`, `,`) first shows what would
run, and asks: a trace can be a stranger's. A file outside of the current folder, or with another
text than the recorded one, takes --file; an expression for the model takes --model.

\b
  tcw open run.tcw
  tcw open run.tcw --file model.py --model 'Net(64)'
  tcw open mailed.tcw --view-only
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import click

from compiler.trace.reader import TraceDecoder, TraceError, open_trace
from workbench.cli.files import existing_file, python_file
from workbench.cli.options import ascii_option, questions_option

HEAD_BYTES = 1 << 16


@click.command(name="open", help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--predict", is_flag=True, help="Guess each fusion before it is shown; a score ends it."
)
@questions_option
@ascii_option
@click.option(
    "--file",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compile this file again, in place of the one that the trace names.",
)
@click.option("--model", default="", metavar="EXPR", help="The model, in the names of that file.")
@click.option("--yes", is_flag=True, help="Compile again without asking: for scripts.")
@click.option("--view-only", is_flag=True, help="Compile nothing again.")
def command(
    file: Path,
    predict: bool,
    questions: int,
    ascii_only: bool,
    source: Path | None,
    model: str,
    yes: bool,
    view_only: bool,
) -> int:
    check(file)
    if view_only and (source is not None or model or yes):
        raise click.UsageError("--view-only compiles nothing: it excludes --file, --model, --yes")
    if source is not None:
        python_file(source)
    if not (sys.stdin.isatty() and sys.stderr.isatty()) and "TEXTUAL_DRIVER" not in os.environ:
        raise click.UsageError("tcw open needs a terminal: its input or output is redirected")
    gc.disable()  # modules live as long as we do: the collector would go through them in vain
    from workbench.tui.again import Word
    from workbench.tui.app import run

    gc.freeze()
    gc.enable()
    word = Word(source, model, yes, view_only)
    return run(file, predict=predict, questions=questions, ascii_only=ascii_only, word=word)


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
