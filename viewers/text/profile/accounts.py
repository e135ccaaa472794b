"""Where the time of both calls goes, and how much remains unexplained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tcw.viewers.kit.figures import TimeUnit
from tcw.viewers.kit.lines import BLANK, TextLine
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.accounts import account_tables
from tcw.viewers.summary.profile.causes.step_words import bare
from tcw.viewers.tables.account import account_lines, doubt_lines
from tcw.viewers.words import plural

_NAMES = 4
"""At most this many names of operations are listed."""


def accounts_lines(profile: Profile, width: int, unit: TimeUnit) -> list[TextLine]:
    lines: list[TextLine] = []
    for one in account_tables(profile):
        what = f"{one.phase} alone" if one.phase else f"where the {unit.name} of a call go"
        lines += [BLANK, heading("account", what), *account_lines(one, unit, width, 2)]
        lines += doubt_lines(one, 2)
        if one.phase == "step":
            lines += _step(profile, width, unit)
    return lines


def _step(profile: Profile, width: int, unit: TimeUnit) -> list[TextLine]:
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
