"""Browse a recorded trace in the terminal.

FILE is a trace written by `tcw explain --trace FILE`, a torch log (TORCH_TRACE), or a folder
of them, as `tcw run` writes it; a trace may still be growing. A folder of several traces
opens at what the ranks did differently. Everything is read from the trace, so one from another
machine opens as well. With a second trace, OTHER, the workbench shows what OTHER does differently,
with both sources side by side.

Opening a trace runs nothing. Compiling the recorded file again (`v`, `f`, `w`, `,`) first shows
what would run, and asks: the trace may come from a stranger. If the recorded file is outside the
current folder or has changed since, --file is required; an expression for the model needs --model.

\b
  tcw open run.tcw
  tcw open before.tcw after.tcw
  tcw open ddp.tcw                                  all ranks of tcw run
  tcw open run.tcw --file model.py --model 'Net(64)'
  tcw open mailed.tcw --view-only
"""

from __future__ import annotations

from pathlib import Path

import click

from tcw.compiler.trace.reader import HEAD, decoder_for, open_trace
from tcw.workbench.request.files import existing_file, python_file, reading
from tcw.workbench.request.folders import following, has_several, several_in, trace_in, traces
from tcw.workbench.request.options import (
    ascii_option,
    importing_screen,
    path_option,
    questions_option,
)


@click.command(name="open", help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path), required=False)
@click.option(
    "--predict", is_flag=True, help="Guess each fusion before it is shown, and get a score."
)
@questions_option
@ascii_option
@path_option(
    "--file", "source", help="Recompile this file instead of the one that the trace names."
)
@click.option(
    "--model", default="", metavar="EXPR", help="Expression for the model, evaluated in that file."
)
@click.option("--yes", is_flag=True, help="Recompile without asking (for scripts).")
@click.option("--view-only", is_flag=True, help="Never recompile.")
def command(
    file: Path,
    other: Path | None,
    predict: bool,
    questions: int,
    ascii_only: bool,
    source: Path | None,
    model: str,
    yes: bool,
    view_only: bool,
) -> int:
    folder = other is None and has_several(file) and bool(traces(file))
    follow = following(file) if other is None and file.is_dir() else None
    file = file if folder else _trace(file)
    other = _trace(other) if other is not None else None
    if view_only and (source is not None or model or yes):
        raise click.UsageError(
            "--view-only never compiles: do not combine it with --file, --model or --yes"
        )
    if source is not None:
        python_file(source)
    with importing_screen("open"):
        from tcw.workbench.tui.app import run
        from tcw.workbench.tui.compile_plan import Allowed

    allowed = Allowed(source, model, yes, view_only)
    several = several_in(file) if folder else None
    return run(
        several.usual.file if several is not None else other or file,
        predict=predict,
        questions=questions,
        ascii_only=ascii_only,
        allowed=allowed,
        base=file if other is not None else None,
        several=several,
        follow=follow,
    )


def _trace(file: Path) -> Path:
    """A trace that can be opened; of a folder the only one."""
    file = trace_in(file)
    check(file)
    return file


def check(file: Path) -> None:
    """Raise a one-line error if `file` is missing, not a trace, or of a newer schema."""
    existing_file(file)
    with reading(file):
        with open_trace(file) as stream:
            head = stream.read(HEAD)
        decoder = decoder_for(head, file)
        records = [*decoder.feed(head), *decoder.finish()]
    if not records and decoder.start is None and not _may_grow(head):
        hint = f"; did you mean 'tcw explain {file}'?" if file.suffix == ".py" else ""
        raise click.UsageError(
            f"{file} is not a tcw trace or a torch log: no record in its first lines{hint}"
        )


def _may_grow(head: bytes) -> bool:
    """Whether a recording may have just begun: the file is empty or its first line incomplete."""
    return head.startswith(b'{"record"') or not head
