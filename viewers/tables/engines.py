"""Two engines that compiled the same graphs: which is faster, and where their compiling went."""

from __future__ import annotations

from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.summary.engine_comparison import Comparison
from tcw.viewers.summary.verdict import busy, factor_text
from tcw.viewers.words import (
    NOT_MEASURED,
    milliseconds_text,
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
