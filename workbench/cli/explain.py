"""Record what torch.compile does to a model, and report what matters.

FILE defines `model` and `example_inputs`, or is a script that calls torch.compile itself.
`example_inputs` is one input set (a tuple, a dict, or a pair of both), a list of input sets (one
call each), or a function that returns either. Arguments for a script come after `--`. `tcw run`
records any other program. FILE may also be a trace, a folder of traces, or a torch log
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

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource

from tcw.compiler.protocol.error_words import meant
from tcw.compiler.trace.output_file import TRACE, OutputRefused
from tcw.compiler.trace.records import (
    AnyRecord,
    Decided,
    End,
    Progress,
    Record,
    Settings,
    StageStart,
)
from tcw.viewers.kit.cells import cut
from tcw.viewers.plain import fit_encoding, plain
from tcw.viewers.recording import Recording
from tcw.viewers.text.sections import DETAILS, SECTIONS
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request import codes
from tcw.workbench.request.files import is_log, named_trace, reading
from tcw.workbench.request.messages import room, write_json, write_markdown
from tcw.workbench.request.options import (
    FileCommand,
    json_option,
    markdown_option,
    path_option,
    project_settings,
    quiet_option,
    recording_options,
    trace_option,
)

if TYPE_CHECKING:
    from tcw.workbench.worker.client import Trials


def show_option(help: str) -> Callable[[Any], Any]:
    """`help`: its help, with `{}` for the names."""
    return click.option(
        "--show",
        multiple=True,
        callback=_show,
        metavar="SECTION,…",
        help=help.format(", ".join(SECTIONS)),
    )


def _show(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    for wanted in names:
        name, equals, detail = wanted.partition("=")
        if name in SECTIONS and equals and detail not in DETAILS.get(name, ()):
            there = " or ".join(f"{name}={one}" for one in DETAILS.get(name, ()))
            raise click.BadParameter(f"{wanted}: use {there or name}")
        if name not in SECTIONS:
            hint = meant(name, SECTIONS, f"Sections: {', '.join(SECTIONS)}.")
            raise click.BadParameter(f"no section {name!r}. {hint}")
    detailed = {wanted.partition("=")[0]: wanted for wanted in sorted(names)}
    return tuple(detailed[name] for name in SECTIONS if name in detailed)


@click.command(name="explain", cls=FileCommand, help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@recording_options
@trace_option
@show_option("Show after the summary: {}; guards=all lists every guard.")
@json_option
@markdown_option
@click.option(
    "--try/--no-try",
    "tries",
    default=None,
    help="Try the fixes before they are shown, up to capture. [default: try those of a model]",
)
@click.option(
    "--try-seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long all trials may take together.",
)
@path_option("--patch", help="Write all fixes that help together as a patch.")
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
    outputs.expect("--patch", ctx.params["patch"])
    recording = Recording(file=trace)

    def tries(runs: Trials, see: Callable[[AnyRecord], None]) -> Iterator[Record]:
        from tcw.workbench.fixes.trials import seconds_for, tried

        seconds = ctx.params["try_seconds"] or seconds_for(recording)
        yield from tried(settings, recording, runs, seconds, see)

    end = record(
        settings,
        trace,
        recording,
        quiet=bool(ctx.params["quiet"]),
        tries=None if ctx.params["tries"] is False else tries,
    )
    if ctx.params["patch"] is not None:
        from tcw.workbench.cli.edits import write_fixes

        write_fixes(outputs, ctx.params["patch"], settings, recording)
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
    """What a trace, a torch log or a folder of either says: nothing is run."""
    from tcw.workbench.cli.open import check
    from tcw.workbench.request.folders import (
        has_several,
        json_of,
        markdown_of,
        only_trace,
        tell,
        trace_in,
    )

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
    tries: Callable[[Trials, Callable[[AnyRecord], None]], Iterable[Record]] | None = None,
    python: str = "",
) -> End:
    """Make the recording, showing progress on stderr; `recording` grows meanwhile.

    `then` returns further records once the worker is gone. It receives how the worker ended, and
    a function that shows the progress of further recordings. `tries` returns records of trials,
    which it runs in the worker, and gets the same function. `python` is another interpreter for
    the worker. Raises `click.UsageError` if the trace cannot be written.
    """
    from tcw.workbench.worker.client import record as record_in_worker

    with ProgressLine(sys.stderr, quiet) as progress:

        def take(one: AnyRecord) -> None:
            recording.feed([one])
            progress.see(one)

        more = None if then is None else lambda end: then(end, progress.see)
        runs = None if tries is None else lambda trials: tries(trials, progress.see)
        try:
            end = record_in_worker(
                settings, trace=trace, on_record=take, then=more, tries=runs, python=python
            )
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


PATIENCE = 10.0
"""Seconds between lines if stderr is not a terminal; a shorter recording prints none."""
TICK = 0.2


class ProgressLine:
    """A context in which records are fed to `see`."""

    def __init__(self, stream: TextIO, quiet: bool) -> None:
        self._stream = stream
        self._live = stream.isatty() and not quiet
        self._quiet = quiet
        self._what = "starting"
        self._began = time.monotonic()
        self._said = self._began
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> ProgressLine:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if not self._quiet:
            self._thread.join()
        if self._live:
            self._write("\r\x1b[K")

    def see(self, record: AnyRecord) -> None:
        """Note what is being done: `build 0/0/forward`."""
        if isinstance(record, Progress):
            self._what = f"{record.stage}  {record.activity}"
        elif isinstance(record, StageStart):
            self._what = f"{record.stage}  {record.graph or record.compile_id}".strip()

    def _tick(self) -> None:
        while not self._done.wait(TICK):
            now = time.monotonic()
            if self._live:
                self._write("\r\x1b[K" + self._text(now))
            elif now - self._said >= PATIENCE:
                self._said = now
                self._write(self._text(now) + "\n")

    def _text(self, now: float) -> str:
        columns = max(20, shutil.get_terminal_size().columns - 1)
        text = cut(plain(f"{now - self._began:4.0f} s  {self._what}"), columns)
        return fit_encoding(text, self._stream.encoding or "ascii")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
