"""Take one call of a model apart: each kernel against the eager operations that it replaced.

FILE is as for `tcw explain`: it holds `model` and `example_inputs`. The model is compiled and
called, then one of its calls is run in rounds, in turn with eager and with clocks in it.

\b
  tcw profile model.py
  tcw profile model.py --train --engine both
  tcw profile model.py --sort line --top 10
  tcw profile model.py --call 2 --rounds 60
  tcw profile model.py --chrome call.json           for Perfetto or chrome://tracing
  tcw profile model.py --trace run.tcw              then: tcw open run.tcw
  tcw profile model.py --modes                      which way to run it, and when it pays
  tcw profile model.py --try                        tries what it suggests, keeps what helps
  tcw profile model.py --try --patch faster.patch   and writes its edits of the source
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from compiler.trace.records import AnyRecord, End, Record, Trial
from compiler.trace.records.profile import CallProfile
from viewers.recording import Recording
from workbench.cli.config import apply_defaults
from workbench.cli.edits import write_patch
from workbench.cli.explain import exit_code, record, show_text
from workbench.cli.files import new_trace, python_file
from workbench.cli.options import (
    FileCommand,
    cached_option,
    json_option,
    model_options,
    quiet_option,
    settings_of,
    timeout_option,
    trace_option,
)
from workbench.cli.output import reader_may_leave, room

SORTS = ("difference", "time", "line")


@click.command(name="profile", cls=FileCommand, help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@model_options
@click.option(
    "--call",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Which call, where the file has several input sets.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=3),
    default=100,
    show_default=True,
    metavar="N",
    help="So many undisturbed ones; fewer where calls take long.",
)
@click.option("--verify", is_flag=True, help="Compare each kernel with float64, beside eager.")
@click.option(
    "--nests",
    is_flag=True,
    help="Time each loop nest of kernels that have several: they are built again, on a CPU.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="difference",
    show_default=True,
    help="Regions by what they lost or won, by their time, or in the order of the source.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="So many regions.")
@click.option(
    "--modes",
    is_flag=True,
    help="Then each way to run it, in processes of their own: both engines, and Inductor's modes.",
)
@click.option("--try", "tries", is_flag=True, help="Then try what the causes suggest.")
@click.option(
    "--patch",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --try: write the edits of the source that were kept as a patch.",
)
@cached_option
@timeout_option
@trace_option
@click.option(
    "--chrome",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="One round of each side for Perfetto, kernels by their lines.",
)
@json_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, file: Path, **_: Any) -> int:
    python_file(file)
    apply_defaults(ctx, file.resolve().parent)
    given = ctx.params
    settings = msgspec.structs.replace(
        settings_of(ctx, file),
        profile=True,
        script_call=True,
        profiled_call=given["call"],
        rounds=given["rounds"],
        verify=given["verify"],
        nests=given["nests"],
    )
    trace: Path | None = given["trace"]
    if trace is not None:
        new_trace(trace)
    if given["patch"] is not None and not given["tries"]:
        raise click.UsageError("--patch FILE is written with --try", ctx)
    if (chrome := given["chrome"]) is not None and not chrome.parent.is_dir():
        raise click.UsageError(f"--chrome {chrome}: there is no folder {chrome.parent}", ctx)
    recording = Recording(file=trace)

    def then(end: End, see: Callable[[AnyRecord], None]) -> Iterator[Record]:
        if given["modes"] and end.status != "interrupted":
            from workbench.cli.modes import modes

            yield from modes(settings, see=see)
        if given["tries"] and end.status == "ok":
            from workbench.cli.trials import tried

            yield from tried(settings, recording, see)

    end = record(settings, trace, recording, quiet=bool(given["quiet"]), then=then)
    if recording.end is None:
        recording.feed([end])
    if given["patch"] is not None:
        click.echo(write_patch(given["patch"], recording.all(Trial)), err=True)
    if chrome is not None:
        _write_chrome(recording, chrome)
    with reader_may_leave():
        if given["as_json"]:
            from viewers.json_report import encode, report

            sys.stdout.write(encode(report(recording)))
        else:
            _show(recording, ctx, trace)
    return exit_code(recording, end)


def _show(recording: Recording, ctx: click.Context, trace: Path | None) -> None:
    from viewers.text.lines import write

    if recording.failure is not None or not recording.all(CallProfile):
        show_text(recording, (), trace)
        return
    width, height = room()
    from viewers.text.profile import profile

    lines = profile(
        recording,
        width,
        height,
        sort=ctx.params["sort"],
        top=ctx.params["top"],
        trace=str(trace or ""),
    )
    write(lines, sys.stdout, width)


def _write_chrome(recording: Recording, file: Path) -> None:
    from viewers.chrome_trace import chrome_trace

    try:
        with file.open("w", encoding="utf-8") as stream:
            json.dump(chrome_trace(recording), stream)
    except OSError as error:
        raise click.UsageError(f"--chrome {file}: {error.strerror}") from error
