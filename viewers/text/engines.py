"""`tcw explain --engine both`: a table of the two engines, then what they share."""

from __future__ import annotations

from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.summary import Summary
from tcw.viewers.summary.engine_comparison import Comparison, EngineColumn
from tcw.viewers.summary.numerics import numerics_words
from tcw.viewers.summary.verdict import busy, ratio_known
from tcw.viewers.tables.engines import verdict_line
from tcw.viewers.text.header import counts, title
from tcw.viewers.words import (
    NOT_MEASURED,
    bytes_text,
    milliseconds_text,
    number,
    ratio_text,
    seconds_text,
)


def header(comparison: Comparison, shared: Summary, width: int) -> list[TextLine]:
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
    rows += [_row(*each) for each in zip(comparison.columns, failed, strict=True)]
    return table(rows, "lrlrrrr" + ("f" if any(failed) else "l"), width, drop=(5, 4))


def _failed(column: EngineColumn) -> bool:
    return column.summary.verdict.tone == "failed"


def _row(column: EngineColumn, failed: bool) -> list[Cell]:
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
