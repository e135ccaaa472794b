"""Say what a change does to compilation: two versions, two settings, or two recordings.

A and B are each a trace (`*.tcw`) or a model (`*.py`), which is recorded first. The first lines
list what changed, costliest first, each with its cause. Lines that only moved and nodes that were
only renamed do not count. A trace is data: it is read and never run.

\b
  tcw diff before.tcw after.tcw
  tcw diff old_model.py model.py
  tcw diff --base main model.py                      the file at a git revision, and as it is now
  tcw diff main..HEAD model.py                       at two revisions
  tcw diff main...HEAD model.py                      since HEAD left main, as in a pull request
  tcw diff model.py --b '--mode max-autotune'        the same file with other options
  tcw diff --base main model.py --measure            run times, too, measured in turn
  tcw diff before.tcw after.tcw -o diff.html         also as a page for the browser
  tcw diff --python-a ../old/bin/python model.py     with another environment's torch
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from tcw.compiler.trace.records import Settings, WhatIf
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import Difference, difference
from tcw.workbench.cli.explain import ProgressLine, exit_code, record, show_text
from tcw.workbench.cli.page import COLUMNS, PAGE, most_option, page_option, write_page
from tcw.workbench.cli.written_files import Outputs
from tcw.workbench.request import codes
from tcw.workbench.request.config import apply_defaults
from tcw.workbench.request.files import existing_file, is_trace, python_file, reading
from tcw.workbench.request.folders import trace_in
from tcw.workbench.request.messages import room, write_json, write_markdown
from tcw.workbench.request.options import (
    FileCommand,
    json_option,
    machine_options,
    markdown_option,
    model_options,
    path_option,
    quiet_option,
    settings_of,
    timeout_option,
    until_option,
)


@dataclass(frozen=True)
class ComparedSide:
    """One side of the comparison."""

    name: str
    """Its name in the report: `model.py at main`."""
    file: Path
    revision: str = ""
    options: str = ""
    """Further options of `tcw explain`, of a file."""
    python: str = ""
    """The interpreter that records it; "" for this one."""


@click.command(name="diff", cls=FileCommand, help=__doc__)
@click.argument("operands", nargs=-1, required=True, metavar="A [B]")
@click.option(
    "--base", default="", metavar="REV", help="Compare FILE as it was at this git revision."
)
@click.option(
    "--a", "options_a", default="", metavar="OPTIONS", help="Options of 'tcw explain' for A only."
)
@click.option(
    "--b", "options_b", default="", metavar="OPTIONS", help="Options of 'tcw explain' for B only."
)
@path_option("--python-a", metavar="PATH", help="Record A with this interpreter and its torch.")
@path_option("--python-b", metavar="PATH", help="Record B with this interpreter and its torch.")
@click.option(
    "--measure",
    is_flag=True,
    help="Also time whole calls of both sides in turn, each in a process of its own.",
)
@click.option("--code", is_flag=True, help="Show the changed kernels as a line diff.")
@model_options
@until_option
@machine_options
@timeout_option
@page_option
@most_option
@json_option
@markdown_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, operands: tuple[str, ...], **_: Any) -> int:
    one, other = (
        _with_python(operand, ctx.params[f"python_{side}"])
        for side, operand in zip("ab", operands_of(ctx, operands), strict=True)
    )
    wanted = [_settings(ctx, operand) for operand in (one, other)]  # refuses before anything runs
    if ctx.params["measure"]:
        _check_measurable((one, other), wanted)
    outputs = Outputs(*filter(None, wanted))
    outputs.expect("--output", ctx.params["output"], PAGE)
    with contextlib.ExitStack() as stack:
        base, code = _recording(ctx, one, wanted[0], stack)
        if code:
            return code
        run, code = _recording(ctx, other, wanted[1], stack)
        if code:
            return code
        measured = _measured(ctx, (base, run), (one, other)) if ctx.params["measure"] else ()
        found = difference(base, run, measured)
        _show(ctx, found, (one.name, other.name))
        if ctx.params["output"] is not None:
            _write(ctx, outputs, found, (one.name, other.name))
    return outputs.code(codes.OK)


def _check_measurable(operands: Sequence[ComparedSide], wanted: Sequence[Settings | None]) -> None:
    """Raises `click.UsageError` if a side does not run here as a whole."""
    for operand, settings in zip(operands, wanted, strict=True):
        why = ""
        if settings is None:
            why = "is a trace: what it recorded is not run again"
        elif settings.engine == "both":
            why = "has two engines: take one of them"
        elif settings.until != "run":
            why = f"is not called: --until {settings.until} stops before that"
        if why:
            raise click.UsageError(f"--measure: {operand.name} {why}")


def _measured(
    ctx: click.Context, sides: Sequence[Recording], operands: Sequence[ComparedSide]
) -> tuple[WhatIf, ...]:
    """Both sides timed in turn, as they were recorded."""
    from tcw.workbench.cli.in_turn import in_turn

    given = [
        (side.start.settings, at.python)
        for side, at in zip(sides, operands, strict=True)
        if side.start is not None
    ]
    with ProgressLine(sys.stderr, bool(ctx.params["quiet"])) as progress:
        return (in_turn(given, progress.see),)


def _show(ctx: click.Context, found: Difference, names: tuple[str, str]) -> None:
    if ctx.params["as_json"]:
        from tcw.viewers.json_diff import diff_report

        write_json(diff_report(found, *names))
        return
    if ctx.params["as_markdown"]:
        from tcw.viewers.markdown.diff import diff_markdown

        write_markdown(diff_markdown(found, *names))
        return
    from tcw.viewers.text.diff import diff_lines
    from tcw.viewers.text.lines import write

    width = room()[0]
    write(diff_lines(found, *names, width, bool(ctx.params["code"])), sys.stdout, width)


def _write(ctx: click.Context, outputs: Outputs, found: Difference, names: tuple[str, str]) -> None:
    from tcw.viewers.reader import whole
    from tcw.viewers.text.diff import diff_lines

    reader = whole(found.run, whole(found.base).view.derived)
    report = diff_lines(found, *names, COLUMNS)
    title = "tcw: " + " → ".join(names)
    write_page(outputs, ctx.params["output"], reader, title, report, ctx.params["most"])


def _with_python(operand: ComparedSide, python: Path | None) -> ComparedSide:
    """Recorded by this interpreter. Raises `click.UsageError` if it cannot."""
    if python is None:
        return operand
    if is_trace(operand.file):
        raise click.UsageError(f"{operand.file} is a trace: it is not recorded again")
    name = f"{operand.name} with torch {torch_of(python)}"
    return replace(operand, name=name, python=os.path.abspath(python))


def operands_of(ctx: click.Context, operands: tuple[str, ...]) -> tuple[ComparedSide, ComparedSide]:
    """Both sides. Raises `click.UsageError` if they are not two."""
    given = ctx.params
    a, b, base = given["options_a"], given["options_b"], given["base"]
    if len(operands) > 2:
        raise click.UsageError(f"at most two to compare, got {len(operands)}")
    first, second = operands[0], operands[1] if len(operands) == 2 else ""
    if ".." in first and not Path(first).exists() and "/.." not in f"/{first}":
        if not second:
            raise click.UsageError(f"of which file? tcw diff {first} FILE")
        return _at_revisions(ctx, first, Path(second))
    files = [trace_in(Path(operand)) for operand in operands]
    for file in files:
        existing_file(file)
    if base:
        if second:
            raise click.UsageError("--base compares one file with itself at a revision")
        return _at(files[0], base, base, a), ComparedSide(files[0].name, files[0], "", b)
    if not second:
        if a == b and given["python_a"] == given["python_b"]:
            raise click.UsageError(
                "nothing to compare with: give B, --base REV, --a, --b, --python-a or --python-b"
            )
        name = files[0].name
        return (
            ComparedSide(f"{name} {a}".rstrip(), files[0], "", a),
            ComparedSide(f"{name} {b}".rstrip(), files[0], "", b),
        )
    same = files[0].name == files[1].name
    names = [
        f"{str(path) if same else path.name} {o}".rstrip()
        for path, o in zip(files, (a, b), strict=True)
    ]
    return ComparedSide(names[0], files[0], "", a), ComparedSide(names[1], files[1], "", b)


def _at_revisions(
    ctx: click.Context, revisions: str, file: Path
) -> tuple[ComparedSide, ComparedSide]:
    """`main..HEAD`, or `main...HEAD` as in git: since HEAD left main."""
    if ctx.params["base"]:
        raise click.UsageError(f"--base and {revisions} exclude each other")
    old, dots, new = revisions.partition("..." if "..." in revisions else "..")
    old, new = old or "HEAD", new or "HEAD"
    base, name = old, old
    if dots == "...":
        base, name = f"{old}...{new}", f"the merge base of {old} and {new}"
    a, b = ctx.params["options_a"], ctx.params["options_b"]
    return _at(file, base, name, a), _at(file, new, new, b)


def _at(file: Path, revision: str, called: str, options: str) -> ComparedSide:
    """A file at a revision, under the name that it had there. A revision that has no such file is
    reported by `_settings`."""
    from tcw.workbench.request.revisions import NoRevision, find

    try:
        name = find(file, revision).inside.name
    except NoRevision:
        name = file.name
    return ComparedSide(f"{name} at {called}", file, revision, options)


def _settings(ctx: click.Context, operand: ComparedSide) -> Settings | None:
    """The options given for both sides, then those of this side alone; None for a trace."""
    from tcw.workbench.cli.explain import command as explain

    if is_trace(operand.file):
        if operand.options or operand.revision:
            raise click.UsageError(f"{operand.file} is a trace: it is not recorded again")
        return None
    if operand.revision:
        from tcw.workbench.request.revisions import find

        find(operand.file, operand.revision)
    else:
        python_file(operand.file)
    apply_defaults(ctx, operand.file.resolve().parent)
    try:
        words = shlex.split(operand.options)
    except ValueError as error:
        raise click.UsageError(f"{operand.options!r}: {error}") from error
    own = explain.make_context("explain", [*words, str(operand.file)], parent=ctx)
    own.params |= {
        name: value
        for name, value in ctx.params.items()
        if name in own.params and own.get_parameter_source(name) is ParameterSource.DEFAULT
    }
    own.meta["tcw.arguments"] = ctx.meta.get("tcw.arguments", ())
    return settings_of(own, operand.file)


def _recording(
    ctx: click.Context,
    operand: ComparedSide,
    settings: Settings | None,
    stack: contextlib.ExitStack,
) -> tuple[Recording, int]:
    """The recording, and the exit code if it cannot be compared."""
    if settings is None:
        with reading(operand.file):
            return Recording.open(operand.file), codes.OK
    if operand.revision:
        from tcw.workbench.request.revisions import at_revision

        file = stack.enter_context(at_revision(operand.file, operand.revision))
        settings = msgspec.structs.replace(settings, file=str(file))
    recording = Recording()
    end = record(settings, None, recording, quiet=bool(ctx.params["quiet"]), python=operand.python)
    if end.status == "interrupted" or (recording.failure is not None and not recording.graphs):
        if ctx.params["as_json"]:
            from tcw.viewers.json_report import report

            write_json(report(recording))
        else:
            show_text(recording, (), None)
        return recording, exit_code(recording, end)
    return recording, codes.OK


_PROBE = """\
import sys
if sys.version_info < (3, 11):
    sys.exit("it is Python %d.%d: tcw needs 3.11" % sys.version_info[:2])
import importlib.metadata as installed
for name in ("torch", "msgspec"):
    try:
        print(installed.version(name))
    except installed.PackageNotFoundError:
        sys.exit(f"it has no {name}: {sys.executable} -m pip install {name}")
"""
_SECONDS = 30.0


def torch_of(python: Path) -> str:
    """The version of torch that the interpreter has, as installed. Raises `click.UsageError` if no
    model can be recorded with it: tcw's worker, started by its file, needs torch and msgspec."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE],
            capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise click.UsageError(f"{python} did not answer in {_SECONDS:g} s") from error
    except OSError as error:
        raise click.UsageError(f"{python} does not start: {error.strerror}") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise click.UsageError(f"{python} cannot record a model: {why}")
    return done.stdout.split()[0]
