"""The table of regions with its picture: time on both sides, and the difference as a bar."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from viewers.kit.bars import Bars
from viewers.kit.figures import TimeUnit, share_text
from viewers.kit.lines import TextLine, line
from viewers.kit.spans import Line, Role, Span
from viewers.places import FileNames
from viewers.summary.profile import Profile, RegionRow, Sort, Sums, Waterfall, ordered
from viewers.summary.profile.where import where
from viewers.tables.region_lines import (
    HEADS,
    RegionColumn,
    RegionLines,
    figures_of,
    name_of,
    place_of,
)

WIDE = 112
"""Width from which launches and the share of the roofline fit."""
_LEAST_BAR = 6
_SMALL = 0.005
"""Share of a call below which a row is not shown unless asked for."""
_FEW, _MANY = 8, 24
"""Least and most rows shown."""
_ROLES: dict[str, Role] = {"lost": "bad", "won": "good", "noise": "dim"}


def regions_table(
    profile: Profile, names: FileNames, width: int, sort: Sort, top: int | None, unit: TimeUnit
) -> list[TextLine]:
    fall = profile.waterfall(sort)
    shown = _mattering(fall) if top is None else fall.rows[:top]
    wide = width >= WIDE
    alone = fall.quiet if len(fall.quiet) == 1 else ()
    files = list(dict.fromkeys(one.file for row in shown or alone for one in row.locations[:1]))
    longer = len(files) > 1 or any(where(row) for row in (*shown, *fall.quiet[:1]))
    room = 24 if wide else 16 if longer else 10
    main = files[0] if len(files) == 1 else ""
    cells = [_row(row, place_of(row, names, main, room), unit) for row in (*shown, *alone)]
    chosen = {row.key for row in shown}
    left_out = [row for row in fall.rows if row.key not in chosen]
    tails = _tails(fall, left_out, "smaller" if top is None else "more", unit)
    if alone:
        [rank, place, name, *rest] = cells.pop()
        tails.insert(-1, [rank, place, f"▸ {name}", *rest])
    whole = ["", "sum", "", *figures_of(fall.total, unit), "", ""]
    heads = ["", *HEADS, "launches", "roofline"][: None if wide else -2]
    texts = [one[: len(heads)] for one in (heads, *cells, *tails, whole)]
    sizes = [max(cell_len(one[at]) for one in texts) for at in range(len(heads))]
    room = width - sum(sizes) - 2 * len(sizes) - 2
    least = 2 * _LEAST_BAR + 1
    if room < least:
        sizes[2] = max(10, sizes[2] - (least - room))
    room = min(60, max(least, width - sum(sizes) - 2 * len(sizes) - 2))
    lost = max((row.difference for row in shown if row.difference > 0), default=0.0)
    won = max((-row.difference for row in shown if row.difference < 0), default=0.0)
    columns = tuple(map(RegionColumn, heads, sizes, (1, *[2] * len(sizes))))
    drawn = RegionLines(columns, Bars.for_values(lost, won, room - 1, _LEAST_BAR), 2)

    def body(words: Sequence[str], role: Role, change: Role) -> Line:
        roles: list[Role] = ["dim", *[role] * 4, change, "dim", "dim", "dim"]
        return drawn.line([(word, one) for word, one in zip(words, roles, strict=False)])

    lines = [TextLine(drawn.head(), fixed=True)]
    shown_texts, tail_texts = texts[1 : 1 + len(cells)], texts[1 + len(cells) : -1]
    for row, words in zip(shown, shown_texts, strict=True):
        role = _ROLES[row.standing]
        spans = body(words, "text", role) + drawn.bar(row.difference, role)
        lines.append(TextLine(spans, fixed=True))
    for words in tail_texts:
        lines.append(TextLine(body(words, "dim", "dim") + drawn.bar(0.0, "dim"), fixed=True))
    lines.append(line(("─" * (sum(sizes) + 2 * len(sizes) + room), "dim"), fixed=True))
    noisy = fall.total.in_noise
    verdict: Span = ("    in noise" if noisy else "", "dim")
    total = body(texts[-1], "strong", "dim" if noisy else "strong")
    return [*lines, TextLine((*total, verdict), fixed=True)]


def _mattering(fall: Waterfall) -> tuple[RegionRow, ...]:
    """The rows that differ by more than a small share of the call, and always at least a few."""
    least = _SMALL * max(fall.total.eager, fall.total.compiled)
    largest = ordered(fall.rows, "difference")
    kept = {row.key for row in largest[:_FEW]}
    kept |= {row.key for row in largest[:_MANY] if abs(row.difference) >= least}
    return tuple(row for row in fall.rows if row.key in kept)


def _tails(
    fall: Waterfall, left_out: Sequence[RegionRow], word: str, unit: TimeUnit
) -> list[list[str]]:
    """What the rows do not show: rows beyond the top, rows in the noise, the rest of the call."""
    named = []
    if left_out:
        named.append((f"… {len(left_out)} {word}", Sums.of(left_out)))
    if len(fall.quiet) > 1:
        what = "in noise" if all(row.known for row in fall.quiet) else "in noise or unknown"
        same = sum(row.same_calls for row in fall.quiet)
        what += f", {same} the same calls" if same else ""
        named.append((f"▸ {len(fall.quiet)} {what}", fall.quiet_sums))
    named.append(("  host and rest", fall.rest))
    return [["", "", name, *figures_of(one, unit), "", ""] for name, one in named]


def _row(row: RegionRow, place: str, unit: TimeUnit) -> list[str]:
    phase = f"{row.phase}: " if row.phase in ("backward", "step") else ""
    launches = f"{row.eager_work.launches:,}→{row.compiled_work.launches:,}"
    both = (row.eager_work.share, row.compiled_work.share)
    shares = "→".join(map(share_text, both)) if any(one is not None for one in both) else ""
    rank = f"{row.rank}{'=' if row.tied else ''}" if row.rank else ""
    return [rank, place, phase + name_of(row), *figures_of(row, unit), launches, shares]
