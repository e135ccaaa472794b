"""Drive the compile of a model step by step, and override its decisions.

FILE is as for `tcw explain`. The compile waits before its first step; keys are on the screen
(`?` for help). `--break` sets breakpoints beforehand:

\b
  tcw step model.py --break model.py:19            a line, when Dynamo reaches it
  tcw step model.py --break op:softmax             a node, by part of its name
  tcw step model.py --break first-rejection        the first rejected fusion
  tcw step model.py --break 'fuse:bytes>=1e6'      decisions, by a condition
  tcw step model.py --break break --break stage:fusion
  tcw step model.py --break inductor/0/0/forward/fuse/amax+exp       this decision
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcw.compiler.protocol.breakpoints import BreakpointError, parse
from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.trace.output_file import TRACE
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request.options import (
    FileCommand,
    ascii_option,
    importing_screen,
    machine_options,
    model_options,
    project_settings,
    questions_option,
    repeatable,
    trace_option,
)


@click.command(name="step", cls=FileCommand, help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@model_options
@repeatable(
    "--break",
    "breaks",
    metavar="SPEC",
    help="Stop at FILE:LINE, op:NAME, stage:STAGE, fuse, save, rejection, break, recompile, "
    "miss, …",
)
@click.option("--predict", is_flag=True, help="Guess each fusion before it is shown.")
@questions_option
@ascii_option
@machine_options
@trace_option
@click.pass_context
def command(ctx: click.Context, /, file: Path, **_: Any) -> int:
    settings = project_settings(ctx, file)
    breakpoints = breakpoints_of(ctx, file)
    trace: Path | None = ctx.params["trace"]
    Outputs(settings).expect("--trace", trace, TRACE)
    with importing_screen("step"):
        from tcw.workbench.tui.app import run_live

    return run_live(
        settings,
        trace,
        bool(ctx.params["predict"]),
        breakpoints,
        questions=ctx.params["questions"],
        ascii_only=bool(ctx.params["ascii_only"]),
    )


def breakpoints_of(ctx: click.Context, file: Path) -> tuple[Breakpoint, ...]:
    """The breakpoints from `--break`. Raises `click.UsageError` for an invalid one."""
    whole = str(file.resolve())
    try:
        return tuple(
            parse(text, number=number, file=whole)
            for number, text in enumerate(ctx.params["breaks"], 1)
        )
    except BreakpointError as error:
        raise click.UsageError(f"--break {error}") from error
