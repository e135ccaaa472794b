"""Two engines that compiled the same graphs: which is faster, and where their compiling went."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

from tcw.compiler.trace.records import Kernel
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.labels import WRITTEN_IN, KernelNames
from tcw.viewers.summary.engine_comparison import Both, Comparison
from tcw.viewers.summary.verdict import busy, factor_text
from tcw.viewers.words import (
    NOT_MEASURED,
    bytes_text,
    milliseconds_text,
    number,
    percent,
    plural,
    ratio_text,
    seconds_text,
)

_SPEED = "Speed of the two engines"


def verdict_line(comparison: Comparison) -> TextLine:
    speed = comparison.speed
    if speed is None:
        why = f": {comparison.ended}" if comparison.ended else ""
        return line(f"{_SPEED} {NOT_MEASURED}{why}", hang=2)
    sides = (
        f"{speed.first} {milliseconds_text(speed.first_ms)}, "
        f"{speed.second} {milliseconds_text(speed.second_ms)}"
    )
    noise, rounds = f"±{percent(speed.noise)}", plural(speed.rounds, "round")
    if busy(speed):
        words = f"{_SPEED} {NOT_MEASURED}: the machine is busy"
        return line((words, "strong"), f": {sides}, {noise} ({rounds})", hang=2)
    if speed.in_noise:
        return line(
            ("No measurable difference", "strong"),
            f": {sides}, {ratio_text(speed.speedup)} {noise} ({rounds})",
            hang=2,
        )
    fast, slow = speed.second, speed.first
    role: Role = "good"
    if speed.speedup < 1:
        fast, slow, role = slow, fast, "bad"
    return line(
        (f"{fast} is {factor_text(speed.speedup, speed.noise)} faster than {slow}", role),
        f": {sides} ({noise}, {rounds})",
        hang=2,
    )


def stages_lines(comparison: Comparison, width: int, indent: int) -> list[TextLine]:
    """The seconds of each stage, and their CPU seconds if there is room."""
    first, second = (column.engine for column in comparison.columns)
    rows: list[list[Cell]] = [[(word, "dim") for word in ("stage", first, "CPU", second, "CPU")]]
    for wall, cpu in zip(comparison.stages, comparison.cpu, strict=True):
        rows.append(
            [
                wall.what,
                _seconds(wall.first),
                (_seconds(cpu.first), "dim"),
                _seconds(wall.second),
                (_seconds(cpu.second), "dim"),
            ]
        )
    return table(rows, "lrrrr", width, indent, (2, 4))


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else seconds_text(seconds)


def graphs_lines(comparison: Comparison, width: int, indent: int) -> list[TextLine]:
    """A head, then of each graph what both engines made of it."""
    heads = ("graph", "loop nests", "library calls", "peak bytes")
    rows: list[list[Cell]] = [[(head, "dim") for head in heads]]
    for pair in comparison.graphs:
        rows.append([pair.graph, _arrow(pair.nests), _arrow(pair.calls), _arrow(pair.peak, _size)])
    return table(rows, "lrrr", width, indent, (2, 3))


def _size(value: float) -> str:
    return bytes_text(int(value))


def _arrow(both: Both, words: Callable[[float], str] = lambda value: number(int(value))) -> str:
    first, second = ("?" if one is None else words(one) for one in (both.first, both.second))
    return f"{first} → {second}"


def lineup_lines(
    comparison: Comparison, names: FileNames, width: int, indent: int, main: str = ""
) -> dict[str, list[TextLine]]:
    """Graph -> a head, then its kernels side by side, by user line. `main`: the file whose name is
    left out; then no line's number is cut."""
    called = [KernelNames(column.recording) for column in comparison.columns]
    head: list[Cell] = ["lines", *(column.engine for column in comparison.columns)]
    tables: dict[str, list[list[Cell]]] = {}
    for line_up in comparison.kernels:
        rows = tables.setdefault(line_up.graph, [[(cell, "dim") for cell in head]])  # type: ignore[misc]
        where = names.lines(line_up.lines) or "no user line"
        if main and line_up.lines:
            where = names.few(line_up.lines, main, width // 5)
        for pair in zip_longest(line_up.first, line_up.second):
            cells = [_kernel(known, kernel) for known, kernel in zip(called, pair, strict=True)]
            rows.append([where, *cells])
            where = ""
    return {graph: table(rows, "fff", width, indent) for graph, rows in tables.items()}


def _kernel(names: KernelNames, kernel: Kernel | None) -> Cell:
    if kernel is None:
        return ""
    name = f"{kernel.id} {names.name(kernel)}"
    if not kernel.generated:
        return (f"{name}  {WRITTEN_IN[kernel.language]}", "dim")
    return name + (f"  {plural(kernel.loop_nests, 'nest')}" if kernel.loop_nests > 1 else "")
