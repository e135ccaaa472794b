"""`-o run.html`: what the workbench would show of a recording, as one file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import click

from tcw.compiler.trace.output_file import OutputKind
from tcw.viewers.html import BEGIN
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.reader import Reader
from tcw.viewers.text.lines import write as write_lines
from tcw.viewers.words import bytes_text
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request.messages import say
from tcw.workbench.request.options import path_option

PAGE = OutputKind("page that tcw exported", lambda head: head.startswith(BEGIN.encode()))
COLUMNS = 100
"""Width of the report for a browser without scripts."""
_SCREENS = 5000
_FIXED = 60_000
"""Bytes of the script and the style, and of the last screen that was begun."""

most_option = click.option(
    "--most",
    type=click.FloatRange(min=0.1),
    default=3.0,
    metavar="MB",
    help="Leave out the screens that would make the page larger than this [3].",
)
page_option = path_option(
    "-o", "--output", help="Write a page for the browser as well, as 'tcw export' does."
)


def write_page(
    outputs: Outputs,
    output: Path,
    reader: Reader,
    title: str,
    report: Sequence[TextLine],
    most: float,
) -> None:
    """Write what `reader` can show, at most about `most` megabytes; `report` is for a browser that
    runs no script. `output` is a file that `outputs` expects."""
    from tcw.viewers.html.document import document
    from tcw.viewers.html.tour import Tour

    text = io.StringIO()
    write_lines(report, text, COLUMNS)
    tour = Tour(reader, int(most * (1 << 20)) - _FIXED - len(text.getvalue()), _SCREENS)
    tour.go()
    page = document(tour, title, text.getvalue())
    if outputs.write("--output", output, page, PAGE):
        say(f"{output}: {len(tour.screens)} screens, {bytes_text(len(page.encode()))}")
