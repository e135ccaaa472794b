"""Find what makes results wrong, and write a file that shows it.

The call is run again through one stage more each time (capture, autograd, the engine's passes), and
each kernel is compared with float64. The first wrong kernel, or else the wrong stage, gets a file.

FILE is as for `tcw explain`, or a trace written by `tcw profile --verify --trace`. A kernel's file
imports only torch. It holds the kernel's part of the graph, with your own lines as comments, and
inputs like those of the recorded call; it compares the compiled result with eager's and float64's.
A stage's file calls your model. Exits with 1 if a kernel or a stage is wrong.

\b
  tcw repro model.py
  tcw repro model.py --train --engine tcw
  tcw repro model.py --kernel k4 -o k4.py           this kernel, right or wrong
  tcw repro run.tcw                                 from a trace: runs nothing

A FILE whose name ends in .py is a model; any other is read as a trace, and never run. An existing
file is never overwritten.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from tcw.compiler.trace.output_file import check, words, write
from tcw.compiler.trace.reader import TraceError
from tcw.compiler.trace.records import Failure, Kernel, KernelPrecision, Warned, WrongStage
from tcw.viewers.collected import grouped
from tcw.viewers.command_line import FILE
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.recording import Recording
from tcw.viewers.summary.numerics import rejected_words
from tcw.viewers.summary.wrong_stage import stage_words
from tcw.viewers.words import listed
from tcw.workbench.cli.explain import exit_code, record, show_text
from tcw.workbench.request import codes
from tcw.workbench.request.files import existing_file, is_trace
from tcw.workbench.request.messages import room
from tcw.workbench.request.options import (
    FileCommand,
    cached_option,
    call_option,
    model_options,
    path_option,
    project_settings,
    quiet_option,
    timeout_option,
)


@click.command(name="repro", cls=FileCommand, help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@model_options
@call_option("compare")
@click.option(
    "--kernel",
    default="",
    metavar="NAME",
    help="Write this kernel, right or wrong: an id such as k4, or a name.",
)
@path_option("-o", "--output", help="The new file to write [default: repro_k4.py for kernel k4].")
@cached_option
@timeout_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, file: Path, **_: Any) -> int:
    existing_file(file)
    given = ctx.params
    output: Path | None = given["output"]
    if output is not None:
        try:
            check(output)
        except OSError as error:
            raise click.UsageError(f"-o {output}: {words(error)}") from error
    recording = Recording()
    of_trace = is_trace(file)
    if of_trace:
        try:
            recording = Recording.open(file)
        except TraceError as error:
            raise click.UsageError(f"{error}; the name of a model file must end in .py") from error
        except OSError as error:
            raise click.UsageError(f"{file}: {error.strerror}") from error
    else:
        settings = msgspec.structs.replace(
            project_settings(ctx, file),
            verify=True,
            repro=given["kernel"],
            profiled_call=given["call"],
        )
        if output is None and (why := _name_taken(given["kernel"])):
            raise click.UsageError(why)
        end = record(settings, None, recording, quiet=bool(given["quiet"]))
        if end.status != "ok" or recording.all(Failure):
            show_text(recording, (), None)
            return exit_code(recording, end)
    result = written(recording, given["kernel"], output, of_trace)
    from tcw.viewers.text.lines import write as write_text

    write_text(result.lines, sys.stdout, room()[0])
    if result.trouble:
        raise click.UsageError(result.trouble)
    return result.code


@dataclass(frozen=True)
class Written:
    """The report, and whether a file was written."""

    lines: list[TextLine]
    code: int
    trouble: str = ""
    """Why the file could not be written, and what to do; "" if it was, or if there is none."""


def written(recording: Recording, wanted: str, output: Path | None, of_trace: bool) -> Written:
    """Write the file, if there is one. `of_trace`: the recording was read from a trace, so its code
    was written by whoever made the trace."""
    parts = [
        part
        for part in (*recording.engines.values(), *recording.runs.values(), recording)
        if part.all(KernelPrecision)
    ]
    if len(parts) > 1:
        del parts[-1]  # the whole trace repeats what its parts have
    found = [(part, precision) for part in parts for precision in part.all(KernelPrecision)]
    stage = recording.last(WrongStage)
    wrong_call = _wrong_call(recording, stage)
    said = line(("wrong results", "bad"), f": {wrong_call}", hang=2)
    if all(precision.within is None for _, precision in found) and not (wanted or wrong_call):
        if not of_trace and not recording.kernels:
            why = "was generated" if recording.graphs else "to compare: no graph was captured"
            return Written([line(f"no kernel {why}")], codes.OK)
        lines = [line("no kernel was compared with float64")]
        lines += _left_out(recording, found)
        return Written([*lines, line("record it with 'tcw profile --verify'")], codes.USAGE)
    lines = [line(_counts([precision for _, precision in found])), *_left_out(recording, found)]
    part, chosen = _chosen(found, wanted)
    if not wanted and stage is not None and stage.stage in ("capture", "autograd", "passes"):
        return _of_stage(recording, stage, output, of_trace, lines)
    if chosen is None or part is None:
        if wanted:
            ids = ", ".join(precision.kernel for _, precision in found)
            lines.append(line(f"no kernel {wanted}; the kernels are {ids}", hang=2))
            return Written(lines, codes.USAGE)
        return Written([*lines, said], codes.FINDING) if wrong_call else Written(lines, codes.OK)
    lines += [BLANK, *_about(part, chosen)]
    text = recording.text(chosen.repro) if chosen.repro else ""
    if not text:
        why = chosen.repro_note or _elsewhere(
            recording, chosen, [precision for _, precision in found]
        )
        lines.append(line(f"no file: {why}", hang=2))
    else:
        target = output or _named_after(chosen.kernel)
        if target is None:
            return Written(lines, codes.USAGE, _NO_NAME.format(chosen.kernel))
        if trouble := _write(target, text, _shows(chosen), of_trace, lines):
            return Written(lines, codes.USAGE, trouble)
    wrong = any(precision.within is False for _, precision in found)
    return Written(lines, codes.FINDING if wrong else codes.OK)


def _wrong_call(recording: Recording, stage: WrongStage | None) -> str:
    """Why the results of the whole call are wrong, of which no kernel is; "" if they are right."""
    if stage is not None:
        return stage_words(recording, stage)
    for part in (*recording.engines.values(), recording):
        if part.numerics is not None and part.numerics.within is False:
            words = "kernels agree with their lowered graphs, but the call does not with eager"
            return f"{words}: {rejected_words(part.numerics)}"
    return ""


def _write(target: Path, text: str, shows: str, of_trace: bool, lines: list[TextLine]) -> str:
    """Write the file and say so; returns why it could not be written."""
    try:
        write(target, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        return f"-o {target}: {words(error)}"
    shows = f"according to the trace, {shows}" if of_trace else shows
    lines += [BLANK, line("wrote ", (str(target), "strong"), f": {shows}")]
    if of_trace:
        lines.append(line((_WHOSE, "dim"), hang=2))
    return ""


def _of_stage(
    recording: Recording,
    stage: WrongStage,
    output: Path | None,
    of_trace: bool,
    lines: list[TextLine],
) -> Written:
    """The report on a graph that is wrong before any kernel is made of it."""
    names = FileNames.for_settings(recording.settings)
    at = stage.location
    place = f"{names.place(at.file, at.line)}  " if at is not None else ""
    words = stage_words(recording, stage)
    lines += [BLANK, line((place, "accent"), ("wrong", "bad"), f": {words}", hang=2)]
    text = recording.text(stage.repro) if stage.repro else ""
    if not text:
        lines.append(line(f"no file: {stage.repro_note or 'the trace has none'}", hang=2))
    else:
        failed = f"run, it failed: {stage.repro_note}" if stage.repro_note else "it was not run"
        shows = {None: failed, True: "run, it shows the error", False: "run, it is right"}
        how = shows[stage.reproduces]
        if trouble := _write(output or Path("repro_graph.py"), text, how, of_trace, lines):
            return Written(lines, codes.USAGE, trouble)
    return Written(lines, codes.FINDING)


_NO_NAME = "the trace names a kernel {!r}, which cannot be a file name: choose one with -o FILE"
_WHOSE = "  nothing was run: whoever made the trace wrote this code, so read it before you run it"


def _name_taken(wanted: str) -> str:
    """Why the file may not get its default name, before the run; "" if it can. Without the id of a
    kernel the name is known only afterwards, so any earlier file counts."""
    exact = re.fullmatch(r"k\d{1,9}", wanted, re.ASCII) is not None
    earlier = sorted(path for path in Path().glob("repro_k*.py") if path.stem[7:].isdecimal())
    for path in [Path(f"repro_{wanted}.py")] if exact else [*earlier[:1], Path("repro_k0.py")]:
        try:
            check(path)
        except OSError as error:
            return f"{path}: {words(error)} (-o FILE)"
    return ""


def _named_after(kernel: str) -> Path | None:
    """The file's name. Raises if the kernel's own name would lead to another folder."""
    return Path(f"repro_{kernel}.py") if re.fullmatch(r"\w{1,64}", kernel, re.ASCII) else None


def _chosen(
    found: list[tuple[Recording, KernelPrecision]], wanted: str
) -> tuple[Recording | None, KernelPrecision | None]:
    """The kernel that was requested, else the first wrong one."""
    for part, precision in found:
        if (
            wanted in (precision.kernel, _name(part, precision))
            if wanted
            else precision.within is False
        ):
            return part, precision
    return None, None


def _name(part: Recording, precision: KernelPrecision) -> str:
    return next((kernel.name for kernel in part.all(Kernel) if kernel.id == precision.kernel), "")


def _elsewhere(
    recording: Recording, precision: KernelPrecision, every: list[KernelPrecision]
) -> str:
    """Why a recording has no file for this kernel, and which command makes one."""
    have = ", ".join(other.kernel for other in every if other.repro)
    what = (
        f"this recording has files for {have} only" if have else "this recording has no such files"
    )
    settings = recording.settings
    file = FILE if settings is None or settings.redacted else Path(settings.file).name
    return f"{what}; 'tcw repro {file} --kernel {precision.kernel}' makes one for this kernel"


def _counts(found: list[KernelPrecision]) -> str:
    wrong = [precision.kernel for precision in found if precision.within is False]
    right = sum(precision.within is True for precision in found)
    left = len(found) - right - len(wrong)
    many = "kernel" if len(found) == 1 else "kernels"
    words = f"{len(found)} {many}: {right} within rounding of float64"
    if wrong:
        words += f", {len(wrong)} not ({', '.join(wrong[:8])}{', …' if len(wrong) > 8 else ''})"
    return words + (f", {left} not compared" if left else "")


def _left_out(
    recording: Recording, found: Sequence[tuple[Recording, KernelPrecision]]
) -> list[TextLine]:
    """What was not compared, by reason."""
    left = grouped(
        ((precision.graph, precision.reason), precision.kernel)
        for _, precision in found
        if precision.within is None
    )
    lines = [
        line(f"  {listed(names)} of {graph}: {reason or 'not compared'}", hang=4)
        for (graph, reason), names in left.items()
    ]
    said = [line(f"  {warned.message}", hang=4) for warned in recording.all(Warned) if warned.asked]
    more = len(lines) - _REASONS
    return [*lines[:_REASONS], *([line(f"  {more:,} more reasons")] if more > 0 else []), *said]


_REASONS = 8
"""Most reasons for not comparing that are listed."""


def _about(part: Recording, precision: KernelPrecision) -> Iterator[TextLine]:
    kernel = next((kernel for kernel in part.all(Kernel) if kernel.id == precision.kernel), None)
    role: Role = "bad" if precision.within is False else "good" if precision.within else "dim"
    verdict = {False: "wrong", True: "right", None: "not compared"}[precision.within]
    title = f"{precision.kernel} {kernel.name}" if kernel is not None else precision.kernel
    yield line((title, "strong"), "  ", (verdict, role), fixed=True)
    if kernel is not None:
        places = ", ".join(f"{Path(at.file).name}:{at.line}" for at in kernel.locations[:4])
        yield line((f"  {kernel.label}  {places}  {precision.graph}", "dim"), hang=2)
    if precision.outputs:
        width = max(len("result"), *(len(output.node) for output in precision.outputs))
        head = f"  {'result':{width}}  {'error':>8}  {'eager':>8}  {'bound':>8}"
        yield line((head, "dim"), fixed=True)
        for output in precision.outputs:
            numbers = (output.error, output.eager_error, output.bound)
            row = "  ".join(f"{_share(number):>8}" for number in numbers)
            yield line(f"  {output.node:{width}}  {row}", (f"  {output.note}", "bad"), hang=4)
    if precision.reason:
        yield line((f"  {precision.reason}", "dim"), hang=2)


def _share(value: float) -> str:
    return "0" if not value else "not near" if value > 1e30 else f"{value:.1e}"


def _shows(precision: KernelPrecision) -> str:
    if precision.reproduces is None:
        return f"run alone, it failed: {precision.repro_note}"
    if precision.reproduces:
        return "run alone, it shows the error"
    if precision.within is False:
        return "run alone, the kernel is right: it is wrong only within its graph"
    return "run alone, it is right too"
