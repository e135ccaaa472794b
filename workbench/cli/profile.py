"""Profile one call of a model: each kernel against the eager operations that it replaces.

FILE is as for `tcw explain`: it defines `model` and `example_inputs`. The model is compiled and
called; then one call is timed in rounds that alternate with eager, and again with clocks inside.

\b
  tcw profile model.py
  tcw profile model.py --train --engine both
  tcw profile model.py --sort line --top 10
  tcw profile model.py --call 2 --rounds 60
  tcw profile model.py --chrome call.json           for Perfetto or chrome://tracing
  tcw profile model.py --trace run.tcw              then: tcw open run.tcw
  tcw profile model.py -o run.html                  a page for the browser, to share
  tcw profile model.py --markdown                   for an issue or a chat
  tcw profile model.py --modes                      compares ways to run it: when each pays off
  tcw profile model.py --try                        tries what it suggests, keeps what helps
  tcw profile model.py --try --patch faster.patch   also writes its source edits as a patch
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from tcw.compiler.trace.output_file import TRACE
from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    KernelPrecision,
    Numerics,
    Record,
    Trial,
)
from tcw.compiler.trace.records.profile import CallProfile
from tcw.viewers.chrome_trace import CHROME, chrome_trace
from tcw.viewers.json_text import json_text
from tcw.viewers.recording import Recording
from tcw.workbench.cli.explain import exit_code, record, show_text
from tcw.workbench.cli.page import COLUMNS, PAGE, most_option, page_option, write_page
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request import codes
from tcw.workbench.request.messages import room, write_json, write_markdown
from tcw.workbench.request.options import (
    FileCommand,
    cached_option,
    call_option,
    json_option,
    markdown_option,
    model_options,
    path_option,
    project_settings,
    quiet_option,
    timeout_option,
    trace_option,
)

SORTS = ("difference", "time", "line")


@click.command(name="profile", cls=FileCommand, help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@model_options
@call_option("profile")
@click.option(
    "--rounds",
    type=click.IntRange(min=3),
    default=100,
    show_default=True,
    metavar="N",
    help="Undisturbed rounds to measure; fewer if calls are slow.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Compare the results of each kernel and of the call; exit with 1 if one is wrong.",
)
@click.option(
    "--nests",
    is_flag=True,
    help="Time each loop nest of kernels with several (rebuilds them; CPU only).",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="difference",
    show_default=True,
    help="Order regions by difference from eager, by time, or by source line.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show at most N regions.")
@click.option(
    "--modes",
    is_flag=True,
    help="Then time each way to run it, in separate processes: both engines and Inductor's modes.",
)
@click.option("--try", "tries", is_flag=True, help="Then try the changes that the causes suggest.")
@path_option("--patch", help="With --try: write the source edits that helped as a patch.")
@cached_option
@timeout_option
@trace_option
@path_option("--chrome", help="Write one round of each side for Perfetto, kernels by source line.")
@page_option
@most_option
@json_option
@markdown_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, file: Path, **_: Any) -> int:
    given = ctx.params
    settings = msgspec.structs.replace(
        project_settings(ctx, file),
        profile=True,
        script_call=True,
        profiled_call=given["call"],
        rounds=given["rounds"],
        verify=given["verify"],
        nests=given["nests"],
    )
    trace: Path | None = given["trace"]
    if given["patch"] is not None and not given["tries"]:
        raise click.UsageError("--patch FILE needs --try")
    outputs = Outputs(settings)
    outputs.expect("--trace", trace, TRACE)
    outputs.expect("--chrome", given["chrome"], CHROME)
    outputs.expect("--patch", given["patch"])
    outputs.expect("--output", given["output"], PAGE)
    recording = Recording(file=trace)

    def then(end: End, see: Callable[[AnyRecord], None]) -> Iterator[Record]:
        if given["modes"] and end.status != "interrupted":
            from tcw.workbench.cli.modes import modes

            yield from modes(settings, see=see)
        if given["tries"] and end.status == "ok":
            from tcw.workbench.cli.trials import tried

            yield from tried(settings, recording, see)

    end = record(settings, trace, recording, quiet=bool(given["quiet"]), then=then)
    if given["patch"] is not None:
        from tcw.workbench.cli.edits import write_patch

        write_patch(outputs, given["patch"], settings, recording.all(Trial))
    if given["chrome"] is not None:
        outputs.write("--chrome", given["chrome"], json_text(chrome_trace(recording), 0), CHROME)
    if given["output"] is not None:
        from tcw.viewers.reader import whole
        from tcw.viewers.text.profile import profile

        reader, title = whole(recording), f"tcw profile {file.name}"
        write_page(
            outputs, given["output"], reader, title, profile(recording, COLUMNS, 0), given["most"]
        )
    if given["as_json"]:
        from tcw.viewers.json_report import report

        write_json(report(recording))
    elif given["as_markdown"]:
        from tcw.workbench.cli.export import markdown

        write_markdown(markdown(recording))
    else:
        _show(recording, ctx, trace)
    outputs.recorded(trace, end)
    code = exit_code(recording, end)
    if code == codes.OK and given["verify"] and _wrong(recording):
        code = codes.FINDING
    return outputs.code(code)


def _wrong(recording: Recording) -> bool:
    """Whether a kernel is wrong, or the whole call of an engine."""
    parts = (recording, *recording.engines.values())
    kernels = (kernel.within for part in parts for kernel in part.all(KernelPrecision))
    calls = (numerics.within for part in parts for numerics in part.all(Numerics))
    return False in (*kernels, *calls)


def _show(recording: Recording, ctx: click.Context, trace: Path | None) -> None:
    from tcw.viewers.text.lines import write

    if recording.failure is not None or not recording.all(CallProfile):
        show_text(recording, (), trace)
        return
    width, height = room()
    from tcw.viewers.text.profile import profile

    lines = profile(
        recording,
        width,
        height,
        sort=ctx.params["sort"],
        top=ctx.params["top"],
        trace=str(trace or ""),
    )
    write(lines, sys.stdout, width)
