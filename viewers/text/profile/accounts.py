"""Where the time of both calls goes, and how much remains unexplained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from compiler.trace.records import Account
from viewers.kit.figures import TimeUnit
from viewers.kit.lines import BLANK, Line
from viewers.kit.spans import Role
from viewers.kit.table import Cell, heading, table
from viewers.plain import plain
from viewers.summary.profile import Profile
from viewers.summary.profile.accounts import AccountTable, account_tables, open_remainder
from viewers.summary.profile.causes.words import bare
from viewers.words import percent, plural

_NAMES = 4
"""At most this many names of operations are listed."""


def accounts_lines(profile: Profile, width: int, unit: TimeUnit) -> list[Line]:
    lines: list[Line] = []
    for one in account_tables(profile):
        what = f"{one.phase} alone" if one.phase else f"where the {unit.name} of a call go"
        lines += [BLANK, heading("account", what), *_account(one, width, unit)]
        if one.phase == "step":
            lines += _step(profile, width, unit)
    return lines


def _step(profile: Profile, width: int, unit: TimeUnit) -> list[Line]:
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


def _account(found: AccountTable, width: int, unit: TimeUnit) -> list[Line]:
    rows: list[list[Cell]] = [
        [("", "dim"), ("eager", "dim"), ("", "dim"), ("compiled", "dim"), ("", "dim"), ""]
    ]
    for one in found.rows:
        row: list[Cell] = [one.name]
        for side, seconds in zip(found.sides, one.seconds, strict=True):
            row += _time(side, seconds, unit)
        rows.append([*row, (one.what, "dim")])
    row = ["remainder"]
    for side in found.sides:
        row += _remainder(side, unit)
    chance = f" (in noise: {' and '.join(found.in_noise)})" if found.in_noise else ""
    rows.append([*row, (f"measured, minus all of the above{chance}", "dim")])
    row = [("call", "strong")]
    for seconds in found.measured:
        row += [(unit.text(seconds), "strong"), ""]
    rows.append([*row, ""])
    return table(rows, "lrrrrf", width, 2)


def _time(account: Account | None, seconds: float | None, unit: TimeUnit) -> list[Cell]:
    if account is None or seconds is None:
        return [("–", "dim"), ""]
    return [unit.text(seconds), (_share(account, seconds), "dim")]


def _remainder(account: Account | None, unit: TimeUnit) -> list[Cell]:
    if account is None:
        return [("–", "dim"), ""]
    role: Role = "bad" if open_remainder(account) else "dim"
    return [(unit.text(account.remainder), role), (_share(account, account.remainder), role)]


def _share(account: Account, seconds: float) -> str:
    whole = account.measured.median
    if whole <= 0:
        return ""
    return f"-{percent(-seconds / whole)}" if seconds < 0 else percent(seconds / whole)
