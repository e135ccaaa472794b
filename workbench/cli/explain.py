"""Record what torch.compile does to a model, and report what matters.

FILE defines `model` and `example_inputs`, or is a script that calls torch.compile itself.
`example_inputs` is one input set (a tuple, a dict, or a pair of both), a list of input sets (one
call each), or a function that returns either. Arguments for a script come after `--`. `tcw run`
records any other program. FILE may also be a trace, a folder of traces, or a log of torch's
(TORCH_TRACE): its report is printed, and nothing is run.

\b
  tcw explain model.py
  tcw explain model.py --train --show breaks,guards
  tcw explain model.py --until capture              fast: generates no code
  tcw explain model.py --model 'Net(64)' --inputs 'f32[8,64]' --inputs 'f32[16,64]'
  tcw explain model.py --markdown                   for an issue or a chat
  tcw explain train.py --trace run.tcw -- --epochs 1
  tcw explain run.tcw                               the same report again
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tcw.compiler.output_file import TRACE, OutputRefused
from tcw.compiler.trace.records import AnyRecord, Decided, End, Record, Settings
from tcw.viewers.recording import Recording
from tcw.workbench.cli import codes
from tcw.workbench.cli.files import is_log, named_trace, reading
from tcw.workbench.cli.options import (
    FileCommand,
    json_option,
    machine_options,
    markdown_option,
    model_options,
    project_settings,
    quiet_option,
    timeout_option,
    trace_option,
    until_option,
)
from tcw.workbench.cli.output import room, write_json, write_markdown
from tcw.workbench.cli.outputs import Outputs
from tcw.workbench.cli.progress import ProgressLine
from tcw.workbench.cli.sections import show_option


@click.command(name="explain", cls=FileCommand, help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@model_options
@until_option
@click.option(
    "--record",
    type=click.Choice(["default", "steps"]),
    default="default",
    metavar="LEVEL",
    help="steps: also record every instruction that Dynamo interprets.",
)
@machine_options
@timeout_option
@trace_option
@show_option("Show after the summary: {}; guards=all lists every guard.")
@json_option
@markdown_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, file: Path, **_: Any) -> int:
    if file.is_dir() or named_trace(file) or is_log(file):
        only_for_reading(ctx, file)
        return _recorded(ctx, file)
    settings = project_settings(ctx, file)
    trace: Path | None = ctx.params["trace"]
    outputs = Outputs(settings)
    outputs.expect("--trace", trace, TRACE)
    recording = Recording(file=trace)
    end = record(settings, trace, recording, quiet=bool(ctx.params["quiet"]))
    _report(ctx, recording, trace)
    outputs.recorded(trace, end)
    return outputs.code(exit_code(recording, end))


_READING = ("file", "show", "as_json", "as_markdown", "quiet")
"""Options that say how a recording is shown; the others say how one is made."""


def only_for_reading(ctx: click.Context, path: Path) -> None:
    """Raise `click.UsageError` for an option of the command line that says how to record."""
    for option in ctx.command.params:
        source = ctx.get_parameter_source(option.name or "")
        if option.name not in _READING and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{option.opts[0]} says how to record, and {path} is recorded already"
            )


def _recorded(ctx: click.Context, path: Path) -> int:
    """What a trace, a log of torch's or a folder of either says: nothing is run."""
    from tcw.workbench.cli.folders import (
        has_several,
        json_of,
        markdown_of,
        only_trace,
        tell,
        trace_in,
    )
    from tcw.workbench.cli.open import check

    if has_several(path):
        if ctx.params["as_json"]:
            write_json(json_of(path))
        elif ctx.params["as_markdown"]:
            write_markdown(markdown_of(path))
        elif not tell(path, "stdout", ctx.params["show"]):
            only_trace(path)
        return codes.OK
    file = trace_in(path)
    check(file)
    with reading(file):
        recording = Recording.open(file)
    _report(ctx, recording, file)
    return codes.OK


def _report(ctx: click.Context, recording: Recording, trace: Path | None) -> None:
    """Write the report in the form that was requested."""
    if ctx.params["as_json"]:
        from tcw.viewers.json_report import report

        write_json(report(recording))
    elif ctx.params["as_markdown"]:
        from tcw.viewers.markdown.report import report as markdown

        write_markdown(markdown(recording, ctx.params["show"]))
    else:
        show_text(recording, ctx.params["show"], trace)


def record(
    settings: Settings,
    trace: Path | None,
    recording: Recording,
    quiet: bool,
    then: Callable[[End, Callable[[AnyRecord], None]], Iterable[Record]] | None = None,
    python: str = "",
) -> End:
    """Make the recording, showing progress on stderr; `recording` grows meanwhile.

    `then` returns further records once the worker is gone. It receives how the worker ended, and
    a function that shows the progress of further recordings. `python` is another interpreter for
    the worker. Raises `click.UsageError` if the trace cannot be written.
    """
    from tcw.workbench.worker.client import record as record_in_worker

    with ProgressLine(sys.stderr, quiet) as progress:

        def take(one: AnyRecord) -> None:
            recording.feed([one])
            progress.see(one)

        more = None if then is None else lambda end: then(end, progress.see)
        try:
            end = record_in_worker(settings, trace=trace, on_record=take, then=more, python=python)
        except OutputRefused as error:
            raise click.UsageError(f"--trace {trace}: {error}") from error
    if recording.end is None:
        recording.feed([end])
    return end


def show_text(recording: Recording, show: tuple[str, ...], trace: Path | None) -> None:
    """Write the summary and the sections to stdout."""
    from tcw.viewers.text.explain import explain
    from tcw.viewers.text.lines import write

    width, height = room()
    write(explain(recording, width, height, show, str(trace or "")), sys.stdout, width)


def exit_code(recording: Recording, end: End) -> int:
    """0, or the reason why the result is incomplete: 3 the model, 4 tcw, 5 an override,
    7 the machine, 130 the user."""
    failure = recording.failure
    if end.status == "interrupted":
        return codes.INTERRUPTED
    if failure is not None:
        faults = {"tcw": codes.INTERNAL, "machine": codes.MACHINE}
        return faults.get(failure.culprit, codes.MODEL_FAILED)
    if end.status != "ok":
        return codes.MODEL_FAILED
    refused = any(decided.refused for decided in recording.all(Decided))
    return codes.REFUSED if refused else codes.OK
