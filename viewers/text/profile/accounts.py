"""Where the time of both calls goes, and how much remains unexplained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from compiler.trace.records import Account, AccountLine
from viewers.kit.figures import Unit
from viewers.kit.spans import Role
from viewers.places import FileNames
from viewers.plain import plain
from viewers.summary.profile import Profile
from viewers.summary.profile.causes.words import bare
from viewers.text.lines import BLANK, Line
from viewers.text.table import Cell, heading, table
from viewers.words import percent, plural

Side = Literal["eager", "compiled"]

UNEXPLAINED = 0.05
"""Unexplained share of a call above which its account does not add up."""
_LINES = 3
"""At most this many lines that run between graphs are named."""
_NAMES = 4
"""At most this many names of operations are listed."""


def accounts_lines(profile: Profile, width: int, unit: Unit) -> list[Line]:
    phases = list(dict.fromkeys(one.phase for one in profile.accounts))
    lines: list[Line] = []
    for phase in phases:
        both = {one.side: one for one in profile.accounts if one.phase == phase}
        what = f"{phase} alone" if phase else f"where the {unit.name} of a call go"
        lines += [BLANK, heading("account", what)]
        lines += _account(profile, phase, both, width, unit)
        if phase == "step":
            lines += _step(profile, width, unit)
    return lines


def _step(profile: Profile, width: int, unit: Unit) -> list[Line]:
    """The optimizer's operations and its compiled steps, grouped by name."""
    rows: list[list[Cell]] = []
    for row in profile.step_rows:
        eager = _named(one.operation for one in row.operations)
        compiled = _named(one.name for one in row.steps)
        for side, names, work in (
            ("eager", eager, row.eager_work),
            ("compiled", compiled, row.compiled_work),
        ):
            launches = plural(work.launches, "launch", "launches")
            cells: list[Cell] = [f"{plain(row.label)} {side}", unit.text(work.seconds)]
            rows.append(
                [*cells, (f"{launches}: {names}" if names else "no graph of its own", "dim")]
            )
    return [BLANK, *table(rows, "lrf", width, 2)] if rows else []


def _named(names: Iterable[str]) -> str:
    counts = Counter(bare(one) for one in names)
    shown = [
        f"{name} ×{count}" if count > 1 else name for name, count in counts.most_common(_NAMES)
    ]
    more = [f"{len(counts) - _NAMES} more"] if len(counts) > _NAMES else []
    return plain(", ".join(shown + more))


def line_words(profile: Profile, line: AccountLine, account: Account) -> str:
    """`4 kernels`; what runs between graphs with its lines, most time first: `18 calls at m.py:20,
    21`."""
    if line.name != "eager" or not line.what:
        return line.what
    places = profile.lines_between(account.phase)
    if not places:
        return line.what
    start = profile.index.recording.start
    file = places[0][0]
    name = FileNames.for_settings(start.settings if start else None).short(file)
    lines = [str(number) for where, number in places if where == file][:_LINES]
    more = " …" if len(places) > len(lines) else ""
    return f"{line.what} at {name}:{', '.join(lines)}{more}"


def _account(
    profile: Profile, phase: str, both: Mapping[Side, Account], width: int, unit: Unit
) -> list[Line]:
    sides = [both.get("eager"), both.get("compiled")]
    names = dict.fromkeys(line.name for one in sides if one for line in one.lines)
    rows: list[list[Cell]] = [
        [("", "dim"), ("eager", "dim"), ("", "dim"), ("compiled", "dim"), ("", "dim"), ""]
    ]
    for name in names:
        row: list[Cell] = [name]
        words = []
        for one in sides:
            found = next((line for line in one.lines if line.name == name), None) if one else None
            row += _time(one, found.time.median if found else None, unit)
            words += [line_words(profile, found, one)] if one and found and found.what else []
        rows.append([*row, ("; ".join(dict.fromkeys(words)), "dim")])
    row = ["remainder"]
    for one in sides:
        row += _remainder(one, unit)
    quiet = [one.side for one in sides if one and in_noise(one)]
    chance = f" (in noise: {' and '.join(quiet)})" if quiet else ""
    rows.append([*row, (f"measured, minus all of the above{chance}", "dim")])
    row = [("call", "strong")]
    for one in sides:
        row += [(unit.text(one.measured.median if one else None), "strong"), ""]
    rows.append([*row, ""])
    return table(rows, "lrrrrf", width, 2)


def _time(account: Account | None, seconds: float | None, unit: Unit) -> list[Cell]:
    if account is None or seconds is None:
        return [("–", "dim"), ""]
    return [unit.text(seconds), (_share(account, seconds), "dim")]


def _remainder(account: Account | None, unit: Unit) -> list[Cell]:
    if account is None:
        return [("–", "dim"), ""]
    much = abs(account.remainder) > UNEXPLAINED * account.measured.median
    open_ = much and not in_noise(account)
    role: Role = "bad" if open_ else "dim"
    return [(unit.text(account.remainder), role), (_share(account, account.remainder), role)]


def in_noise(account: Account) -> bool:
    """Whether the remainder means nothing because it may be noise."""
    return abs(account.remainder) <= account.remainder_noise


def _share(account: Account, seconds: float) -> str:
    whole = account.measured.median
    if whole <= 0:
        return ""
    return f"-{percent(-seconds / whole)}" if seconds < 0 else percent(seconds / whole)
