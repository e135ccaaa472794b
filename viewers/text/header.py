"""The first lines of a report: what was recorded, the verdict or the failure, the counts."""

from __future__ import annotations

import os

from tcw.compiler.trace.records import Failure
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.lines import TextLine, line, prose
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.labels import calls_text
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary
from tcw.viewers.summary.engine_comparison import Comparison, EngineColumn
from tcw.viewers.summary.numerics import numerics_words
from tcw.viewers.summary.place import place_of
from tcw.viewers.summary.verdict import busy, during, last_words, ratio_known
from tcw.viewers.tables.engine_lines import verdict_line
from tcw.viewers.tables.findings import place_lines
from tcw.viewers.words import (
    NOT_MEASURED,
    bytes_text,
    milliseconds_text,
    number,
    plural,
    ratio_text,
    seconds_text,
)

_GRAD = {"grad": "grad", "no-grad": "no-grad", "inference": "inference mode", "train": "train"}


def header(summary: Summary) -> list[TextLine]:
    """Title, verdict, counts."""
    tone = TONES[summary.verdict.tone]
    verdict = summary.verdict
    numbers = verdict.detail.text
    detail = f": {numbers}" if numbers else ""
    return [title(summary), line((verdict.headline, tone), detail, hang=2), counts(summary)]


def file_name(summary: Summary) -> str:
    """`block.py`."""
    return os.path.basename(summary.settings.file) if summary.settings else "recording"


def title(summary: Summary, engine: str = "") -> TextLine:
    """`block.py  train · inductor · torch 2.13.0 · cpu, 2 threads · 4 calls`."""
    words = " · ".join(settings_words(summary, engine))
    return line((file_name(summary), "strong"), (f"  {words}", "dim"), hang=2)


def settings_words(summary: Summary, engine: str = "") -> list[str]:
    """What was recorded and how, one phrase each; `engine` if there was more than one."""
    settings, machine = summary.settings, summary.environment
    words = []
    if summary.not_in_log:
        words.append("a torch log")
    elif settings and settings.program:
        words.append("recorded in its own process")
    elif summary.script:
        words.append("script")
    elif settings:
        words += [_GRAD[settings.grad], engine or settings.engine]
        words += [settings.mode] if settings.mode else []
        words += ["torch's caches"] if settings.cached else []
        words += ["fullgraph"] if settings.fullgraph else []
        if settings.dynamic is not None:
            words.append("dynamic" if settings.dynamic else "no dynamic shapes")
    if machine:
        words += [f"torch {machine.torch}"]
        cpu = [] if summary.not_in_log else [f"cpu, {plural(machine.threads, 'thread')}"]
        words += [summary.gpu] if summary.gpu else cpu
    if settings and settings.device == "cuda":
        arch = settings.arch or "cuda"
        words.append(f"{'' if summary.kernels.predicted else 'no '}code for {arch} predicted")
    calls = sum(1 for call in summary.calls if call.number)
    calls = max(calls, summary.end.calls if summary.end else 0)
    known = summary.end is not None or not (settings and settings.program)
    if calls and known:
        words.append(plural(calls, "call"))
    if settings and settings.until != "run":
        words.append(f"until {settings.until}")
    if settings and settings.defaults_from:
        words.append(f"defaults from {_beside(settings.defaults_from, settings.file)}")
    return words


def _beside(file: str, other: str) -> str:
    """A path relative to the folder of another file."""
    if not (os.path.isabs(file) and os.path.isabs(other)):
        return file
    return os.path.relpath(file, os.path.dirname(other))


def counts(summary: Summary, captured_only: bool = False) -> TextLine:
    """`3 graphs, 2 breaks · 2 causes of recompiling, 20.1 s · 39 kernels · max error 4.8e-07`.

    `captured_only`: omit what depends on the engine.
    """
    breaks, causes = len(summary.breaks), len(summary.recompiles)
    first = f"{plural(summary.graphs, 'graph')}, {plural(breaks, 'break')}"
    if not causes:
        first += ", no recompiles"
    parts = [first]
    if causes:
        took = summary.recompile_seconds
        spent = f", {seconds_text(took)}" if took is not None else ""
        cause = "1 cause" if causes == 1 else f"{causes} causes"
        parts.append(f"{cause} of recompiling{spent}")
    if not summary.findings:
        parts.append(plural(summary.guards, "guard"))
    if captured_only:
        return line(" · ".join(parts), hang=2)
    if summary.kernels.by_language:
        parts.append(kernel_count(summary))
    if summary.kernels.predicted:
        parts.append(f"{number(summary.kernels.predicted)} predicted")
    parts.append(_numerics(summary))
    return line(" · ".join(part for part in parts if part), hang=2)


def kernel_count(summary: Summary) -> str:
    """`39 kernels (27 library calls, 2 draws)`."""
    calls = calls_text(summary.kernels.by_language)
    count = plural(summary.kernels.count, "kernel")
    return f"{count} ({calls})" if calls else count


def _numerics(summary: Summary) -> str:
    numerics = summary.numerics
    if numerics is None:
        settings = summary.settings
        ran = settings is not None and settings.until == "run" and not settings.program
        return f"error {NOT_MEASURED}" if ran and summary.failure is None else ""
    return numerics_words(numerics)


def engines_header(comparison: Comparison, shared: Summary, width: int) -> list[TextLine]:
    """Title, verdict, the table. `shared`: the summary of the engine that ran first."""
    return [
        title(shared, " and ".join(column.engine for column in comparison.columns)),
        verdict_line(comparison),
        counts(shared, captured_only=True),
        *engine_table(comparison, width),
    ]


def engine_table(comparison: Comparison, width: int) -> list[TextLine]:
    """One row per engine: speed, compile time, loop nests, calls, memory, error.

    If space is short, the counts are dropped, never the error.
    """
    names = ("engine", "a call", "against eager", "compiled in", "loop nests", "calls", "peak", "")
    failed = [not comparison.ended and _failed(column) for column in comparison.columns]
    rows: list[list[Cell]] = [[(name, "dim") for name in names]]
    rows += [_engine(*each) for each in zip(comparison.columns, failed, strict=True)]
    return table(rows, "lrlrrrr" + ("f" if any(failed) else "l"), width, drop=(5, 4))


def _failed(column: EngineColumn) -> bool:
    return column.summary.verdict.tone == "failed"


def _engine(column: EngineColumn, failed: bool) -> list[Cell]:
    summary = column.summary
    speed, numerics = summary.speed, summary.numerics
    against: Cell = (NOT_MEASURED, "dim")
    compiled = NOT_MEASURED
    if speed is not None:
        ratio = ratio_text(speed.speedup)
        if not speed.in_noise:
            role: Role = "good" if speed.speedup >= 1 else "bad"
            against = (ratio_known(speed.speedup, speed.noise), role)
        elif not busy(speed):
            against = (f"≈ same ({ratio})", "dim")
        compiled = seconds_text(speed.compile_seconds)
        if speed.compile_cpu_seconds is not None:
            compiled += f", {seconds_text(speed.compile_cpu_seconds)} CPU"
    last = numerics_words(numerics) if numerics else ""
    return [
        (column.engine, "strong"),
        milliseconds_text(speed.compiled_ms) if speed else (NOT_MEASURED, "dim"),
        against,
        compiled,
        number(column.loop_nests),
        number(column.calls),
        bytes_text(column.peak_bytes) if column.peak_bytes is not None else "unknown",
        (summary.verdict.text, "bad") if failed else last,
    ]


MORE = 3
"""Lines of a message shown after the first."""


def failure_lines(
    recording: Recording, summary: Summary, names: FileNames, width: int
) -> list[TextLine]:
    """The failure: where it happened, who caused it if known, the line, the message, the hint."""
    failure = summary.failure
    if failure is None:
        verdict = summary.verdict
        reason = verdict.detail.text
        detail = f": {reason}" if reason else ""
        lines = [line((f"{file_name(summary)} {verdict.headline}", "bad"), detail, hang=2)]
        if summary.doing and not reason:
            lines.append(line(("  last seen in ", "dim"), summary.doing, hang=2))
        return lines
    lines = [
        line(
            (f"{file_name(summary)} {_ended(summary)} {during(failure.doing)}", "bad"),
            (_blame(failure), "strong"),
            hang=2,
        )
    ]
    place = place_of(recording, failure.location, failure.source_line)
    if place is not None:
        lines += place_lines(place, names, 2, width)
    first, *rest = failure.message.strip().splitlines() or [""]
    if failure.evidence and failure.evidence != first:  # a compiler's command line comes before it
        first, rest = failure.evidence, []
    kind = "" if failure.type in ("", summary.status) else failure.type
    gap = ": " if kind and first else ""
    lines.append(line("  ", (kind, "strong"), f"{gap}{first}", hang=4))
    if said := last_words(recording, failure):
        lines.append(line("    ", ("stderr  ", "dim"), said, hang=4))
    rest = [row for row in rest if row.strip()]
    lines += [line("    ", row, hang=4) for row in rest[:MORE]]
    if len(rest) > MORE:
        lines.append(line(("    " + f"… {len(rest) - MORE} more lines: --show output", "dim")))
    if failure.hint:
        lines += prose("  ", failure.hint)
    return lines


def _ended(summary: Summary) -> str:
    """`failed`, or how the process ended."""
    words = {"timeout": "timed out", "crashed": "crashed", "interrupted": "was interrupted"}
    return words.get(summary.status, "failed")


def _blame(failure: Failure) -> str:
    if failure.culprit == "tcw":
        return ". This is a bug in tcw, not in the model"
    if failure.culprit == "machine":
        return ". The machine is the cause, not the model"
    if failure.eager_fails is None:
        return ". torch itself raises this" if failure.culprit == "torch" else ""
    if failure.eager_fails:
        return ". Eager fails too: torch.compile is not the cause"
    return ". Eager works: torch.compile is the cause"
