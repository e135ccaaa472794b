"""Write a recording as one HTML file that opens in any browser.

FILE is a trace written by `tcw explain --trace FILE`. The page has the panes of `tcw open`:
findings, source, graphs, kernels, guards, fusion decisions, memory and profile, linked line by
line. It works with mouse and keyboard, in a dark and a light theme, without a network or a server.
Nothing in it runs but its own script: text from the trace is shown as text.

--markdown writes a report for a GitHub issue or a chat instead: verdict, findings with lines and
fixes, and folded details, within GitHub's limit of 65,536 characters. For a trace of `tcw profile`
it is the profile; for a folder of traces, what each process did. Without -o it goes to stdout.

--redact writes a trace instead, for people who cannot send code. It removes source text, names,
paths, strings, constants and printed output; the new trace lists what was removed.

A large trace is cut at --most megabytes; the page says what was left out. An existing file is only
overwritten if tcw exported it.

\b
  tcw explain model.py --trace run.tcw
  tcw export run.tcw -o run.html
  tcw export run.tcw --markdown
  tcw export run.tcw --redact -o redacted.tcw
"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from tcw.compiler.trace.output_file import TRACE, OutputKind
from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import Warned
from tcw.compiler.trace.records.profile import CallProfile
from tcw.viewers.markdown import MARKERS
from tcw.viewers.reader import whole
from tcw.viewers.recording import Recording
from tcw.viewers.text.explain import explain
from tcw.workbench.cli.explain import show_option
from tcw.workbench.cli.page import COLUMNS, PAGE, most_option, write_page
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request import codes
from tcw.workbench.request.files import existing_file, reading
from tcw.workbench.request.folders import has_several, markdown_of, trace_in
from tcw.workbench.request.messages import say, write_markdown
from tcw.workbench.request.options import markdown_option

REPORT = OutputKind(
    "Markdown report", lambda head: head.startswith(tuple(map(str.encode, MARKERS)))
)


@click.command(name="export", help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write.")
@most_option
@click.option(
    "--redact",
    is_flag=True,
    help="Write a trace without source, names, paths, strings and output instead.",
)
@markdown_option
@show_option("With --markdown: sections to fold below the findings: {}.")
def command(
    file: Path,
    output: Path | None,
    most: float,
    redact: bool,
    as_markdown: bool,
    show: tuple[str, ...],
) -> int:
    processes = as_markdown and has_several(file)
    if not processes:
        file = trace_in(file)
        existing_file(file)
    outputs = Outputs()
    if redact and as_markdown:
        raise click.UsageError("--redact and --markdown exclude each other: redact first")
    if show and not as_markdown:
        raise click.UsageError("--show goes with --markdown: a page has everything")
    if output is None and not as_markdown:
        raise click.UsageError("Missing option '-o' / '--output'.")
    if redact and output is not None:
        return _write_redacted(outputs, file, output)
    outputs.expect("--output", output, REPORT if as_markdown else PAGE)
    if processes:
        if show:
            raise click.UsageError(f"--show needs a single recording: {file} has several")
        return _markdown(outputs, output, markdown_of(file))
    with reading(file):
        recording = Recording.open(file)
    if as_markdown:
        return _markdown(outputs, output, markdown(recording, show))
    assert output is not None
    report = explain(recording, COLUMNS, 0)
    write_page(outputs, output, whole(recording), f"tcw: {file.name}", report, most)
    return outputs.code(codes.OK)


def _write_redacted(outputs: Outputs, file: Path, output: Path) -> int:
    """Write the copy and say what was taken out. Returns the exit code; raises `click.UsageError`
    for a file that is not a trace, and for an output that may not be written."""
    from tcw.compiler.trace.redaction import redacted

    if output.exists() and output.samefile(file):
        raise click.UsageError(f"--output {output} is the trace itself")
    outputs.expect("--output", output, TRACE)
    with reading(file):
        records = list(redacted(read_trace(file).records))
    encode = msgspec.json.Encoder().encode
    text = "".join(encode(record).decode() + "\n" for record in records)
    if outputs.write("--output", output, text, TRACE):
        removed = next(record.message for record in records if isinstance(record, Warned))
        say(f"{output}: {removed}")
    return outputs.code(codes.OK)


def markdown(recording: Recording, show: tuple[str, ...] = ()) -> str:
    """The report of `tcw profile` or `tcw explain`."""
    if recording.all(CallProfile) and recording.failure is None and not show:
        from tcw.viewers.markdown.profile import profile_markdown

        return profile_markdown(recording)
    from tcw.viewers.markdown.report import report

    return report(recording, show)


def _markdown(outputs: Outputs, output: Path | None, text: str) -> int:
    if output is None:
        write_markdown(text)
    else:
        outputs.write("--output", output, text, REPORT)
    return outputs.code(codes.OK)
