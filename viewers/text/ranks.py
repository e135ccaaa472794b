"""What ranks did differently first, in which collective they wait, and how long each compiled."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import Advice
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.summary.ranks.divergence import (
    Divergence,
    RankMember,
    first_divergence,
    rank_words,
)
from tcw.viewers.summary.ranks.times import compile_times, rank_times
from tcw.viewers.tables.findings import advice_lines, place_lines
from tcw.viewers.words import plural, seconds_text

COLUMN = 11
"""The cell at which a finding's texts start."""
SHORT = 0.1
"""Seconds of waiting that are not worth a line."""


def ranks_lines(members: Sequence[RankMember], names: FileNames, width: int) -> list[TextLine]:
    """The first difference, then the times; none of a single rank."""
    if len(members) < 2:
        return []
    divergence = first_divergence(members)
    lines = divergence_lines(divergence, names, width) if divergence is not None else []
    times = times_lines(members)
    return [*([BLANK] if lines else []), *lines, *([BLANK] if times else []), *times]


def divergence_lines(found: Divergence, names: FileNames, width: int) -> list[TextLine]:
    """The finding: what, where, each rank's reason, who waits, what to do."""
    first = found.sides[found.subject]
    others = [one for one in found.sides if one is not first]
    title = f"{rank_words(first.ranks)} {_verb(first.words, first.ranks)}"
    head = "✗  ranks".ljust(COLUMN)
    named = not found.function or found.function in first.words
    where = "" if named else f"  in {found.function}"
    lines = [line((head, "bad"), (title, "strong"), (where, "dim"), hang=COLUMN)]
    if found.place is not None:
        lines += place_lines(found.place, names, COLUMN, width)
    for side in others:
        there = ""
        if side.place is not None and side.place != found.place:
            there = f"  {names.place(side.place.file, side.place.line)}"
        words = f"{rank_words(side.ranks)} {_verb(side.words, side.ranks)}"
        lines.append(line(" " * COLUMN, words, (there, "dim"), hang=COLUMN + 2))
    if found.condition is not None:
        because = line(" " * COLUMN, ("because  ", "dim"))
        placed = place_lines(found.condition, names, 0, width - COLUMN - 9)
        lines.append(line(*because.spans, *placed[0].spans, hang=COLUMN + 9))
    elif found.why:
        lines.append(line(" " * COLUMN, ("because  ", "dim"), found.why, hang=COLUMN + 9))
    for wait in found.waits:
        at = f" at {names.place(wait.place.file, wait.place.line)}" if wait.place else ""
        text = f"{rank_words(wait.ranks)} in {wait.words}{at}: {wait.because}"
        lines.append(line(" " * COLUMN, ("waits  ", "warn"), text, hang=COLUMN + 7))
    if found.fix:
        lines += advice_lines([Advice(text=found.fix)], COLUMN, width)
    return lines


def _verb(words: str, ranks: Sequence[int]) -> str:
    """The words for one rank, or for several: `calls f` → `call f`."""
    if len(ranks) == 1:
        return words
    first, space, rest = words.partition(" ")
    return f"{_PLURAL.get(first, first)}{space}{rest}"


_PLURAL = {
    "calls": "call", "does": "do", "compiles": "compile", "recompiles": "recompile",
    "starts": "start", "has": "have", "captures": "capture", "guards": "guard", "ends": "end",
    "gets": "get", "computes": "compute", "asks": "ask",
}  # fmt: skip


def times_lines(members: Sequence[RankMember]) -> list[TextLine]:
    """Which ranks compiled longer, and where the others waited for them; empty if none did."""
    times = rank_times(members)
    if len(times) < 2:
        return []
    slow, quick = max(times, key=lambda one: one.seconds), min(times, key=lambda one: one.seconds)
    lines = []
    if slow.seconds - quick.seconds >= SHORT:
        text = (
            f"{seconds_text(quick.seconds)} (rank {quick.rank}) to "
            f"{seconds_text(slow.seconds)} (rank {slow.rank}) a rank"
        )
        lines.append(line(("compile  ", "dim"), text, hang=9))
    stragglers = [one.rank for one in times if one.straggler]
    if stragglers:
        lines.append(line(("         ", "dim"), (_stragglers(stragglers), "warn"), hang=9))
    waits = [one for one in compile_times(members) if one.spread >= SHORT]
    for wait in waits[:3]:
        name = f"{wait.compile_id} {wait.function}".strip()
        text = (
            f"{name}: the others wait up to {seconds_text(wait.spread)} for rank {wait.slowest}, "
            "if they meet after it"
        )
        lines.append(line(("waits    " if wait is waits[0] else "         ", "dim"), text, hang=9))
    if len(waits) > 3:
        lines.append(line((f"         {plural(len(waits) - 3, 'more compile')}", "dim")))
    return lines


def _stragglers(ranks: Sequence[int]) -> str:
    many = "is a straggler" if len(ranks) == 1 else "are stragglers"
    return f"{rank_words(ranks)} {many}: at least 1.2 times the median of all ranks"
