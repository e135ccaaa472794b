"""Write a recording as one HTML file, to be read in a browser where nothing is installed.

FILE is a trace written by `tcw explain --trace FILE`. The page has the panes of `tcw open`:
findings, source, graphs, kernels, guards, fusion decisions, memory and profile, linked line by
line, for the mouse and the keyboard, dark and light. It needs no network and no server, and
nothing in it runs but its own script: text from the trace is shown as text.

With --redact it is a trace again, for people who cannot send code: source text, names, paths,
strings, constants and printed output are taken out, and what was taken out is listed in it.

A large trace is cut at --most megabytes; the page says what was left out. An existing file is only
overwritten if tcw exported it.

\b
  tcw explain model.py --trace run.tcw
  tcw export run.tcw -o run.html
  tcw export run.tcw --redact -o redacted.tcw
"""

from __future__ import annotations

import io
from pathlib import Path

import click

from compiler.output_file import Kind, check, words, write
from compiler.trace.reader import TraceError
from viewers.html.document import BEGIN, document
from viewers.html.tour import Tour, reader_of
from viewers.recording import Recording
from viewers.text.explain import explain
from viewers.text.lines import write as write_lines
from workbench.cli import codes
from workbench.cli.files import existing_file
from workbench.cli.output import say

PAGE = Kind("page that tcw exported", lambda head: head.startswith(BEGIN.encode()))
_COLUMNS = 100
_SCREENS = 5000
_FIXED = 60_000
"""Bytes of the script and the style, and of the last screen that was begun."""


@click.command(name="export", help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The new file."
)
@click.option(
    "--most",
    type=click.FloatRange(min=0.1),
    default=3.0,
    metavar="MB",
    help="Leave screens out beyond this size [3].",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Write a trace without source, names, paths, strings and output instead.",
)
def command(file: Path, output: Path, most: float, redact: bool) -> int:
    existing_file(file)
    if redact:
        from workbench.cli.redact import redact as write_redacted

        return write_redacted(file, output)
    try:
        check(output, PAGE)
    except OSError as error:
        raise click.UsageError(f"--output {output}: {words(error)}") from error
    try:
        recording = Recording.open(file)
    except TraceError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error
    report = io.StringIO()
    write_lines(explain(recording, _COLUMNS, 0, (), ""), report, _COLUMNS)
    tour = Tour(reader_of(recording), int(most * 1e6) - _FIXED - len(report.getvalue()), _SCREENS)
    tour.go()
    page = document(tour, f"tcw: {file.name}", report.getvalue()).encode()
    try:
        write(output, page, PAGE)
    except OSError as error:
        say(f"--output {output} was not written: {words(error)}")
        return codes.UNWRITTEN
    say(f"{output}: {len(tour.screens)} screens, {len(page) / 1e6:.1f} MB")
    return codes.OK
