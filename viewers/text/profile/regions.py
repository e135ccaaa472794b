"""The table of regions with its picture: time on both sides, and the difference as a bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcw.viewers.kit.figures import TimeUnit, share_text
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Line, Role, Span, width_of
from tcw.viewers.places import FileNames
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.rows import RegionRow, Sort, ordered
from tcw.viewers.summary.profile.waterfall import Sums, Waterfall
from tcw.viewers.tables.region_lines import (
    FURTHER,
    HEADS,
    LINE,
    REGION,
    RegionLines,
    figure_cells,
    name_of,
    place_of,
    place_room,
    spans_of,
)

WIDE = 112
"""Width from which launches and the share of the roofline fit."""
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
    alone = fall.quiet if len(fall.quiet) == 1 else ()
    files = list(dict.fromkeys(one.file for row in shown or alone for one in row.locations[:1]))
    main = files[0] if len(files) == 1 else ""
    room = place_room(width)
    cells = [_row(row, place_of(row, names, main, room), unit) for row in (*shown, *alone)]
    chosen = {row.key for row in shown}
    left_out = [row for row in fall.rows if row.key not in chosen]
    tails = _tails(fall, left_out, "smaller" if top is None else "more", unit)
    if alone:
        quiet = cells.pop()
        tails.insert(-1, {**quiet, REGION: f"▸ {quiet[REGION]}"})
    whole = {REGION: "sum", **figure_cells(fall.total, unit)}
    lost = max((row.difference for row in shown if row.difference > 0), default=0.0)
    won = max((-row.difference for row in shown if row.difference < 0), default=0.0)
    heads = ("", *HEADS, *(FURTHER if width >= WIDE else ()))
    drawn = RegionLines.fitted(heads, [*cells, *tails, whole], width, lost, won)

    def body(words: Mapping[str, str], role: Role, change: Role) -> Line:
        return drawn.line(spans_of({LINE: "", **words}, role, change))

    lines = [TextLine(drawn.head(), fixed=True)]
    for row, words in zip(shown, cells, strict=True):
        role = _ROLES[row.standing]
        spans = body(words, "text", role) + drawn.bar(row.difference, role)
        lines.append(TextLine(spans, fixed=True))
    for words in tails:
        lines.append(TextLine(body(words, "dim", "dim") + drawn.bar(0.0, "dim"), fixed=True))
    noisy = fall.total.in_noise
    total = body(whole, "strong", "dim" if noisy else "strong")
    bars = drawn.bar_gap + drawn.bars.left + drawn.bars.right + 1 if drawn.bars else 0
    lines.append(line(("─" * min(width, width_of(total) + bars), "dim"), fixed=True))
    if not noisy:
        return [*lines, TextLine(total, fixed=True)]
    while not total[-1][0].strip():  # launches and roofline, which a sum lacks
        total = total[:-1]
    verdict: Span = ("    in noise", "dim")
    if width_of((*total, verdict)) <= width:
        return [*lines, TextLine((*total, verdict), fixed=True)]
    below: Span = (" " * (width_of(total) - len("in noise")) + "in noise", "dim")
    return [*lines, TextLine(total, fixed=True), TextLine((below,), fixed=True)]


def _mattering(fall: Waterfall) -> tuple[RegionRow, ...]:
    """The rows that differ by more than a small share of the call, and always at least a few."""
    least = _SMALL * max(fall.total.eager, fall.total.compiled)
    largest = ordered(fall.rows, "difference")
    kept = {row.key for row in largest[:_FEW]}
    kept |= {row.key for row in largest[:_MANY] if abs(row.difference) >= least}
    return tuple(row for row in fall.rows if row.key in kept)


def _tails(
    fall: Waterfall, left_out: Sequence[RegionRow], word: str, unit: TimeUnit
) -> list[dict[str, str]]:
    """What the rows do not show: rows beyond the top, rows in the noise, the rest of the call."""
    named = []
    if left_out:
        named.append((f"… {len(left_out)} {word}", Sums.of(left_out)))
    if len(fall.quiet) > 1:
        same = sum(row.same_calls for row in fall.quiet)
        what = fall.quiet_words + (f", {same} the same calls" if same else "")
        named.append((f"▸ {what}", fall.quiet_sums))
    named.append(("  host and rest", fall.rest))
    return [{REGION: name, **figure_cells(one, unit)} for name, one in named]


def _row(row: RegionRow, place: str, unit: TimeUnit) -> dict[str, str]:
    phase = f"{row.phase}: " if row.phase in ("backward", "step") else ""
    both = (row.eager_work.share, row.compiled_work.share)
    return {
        "": f"{row.rank}{'=' if row.tied else ''}" if row.rank else "",
        LINE: place,
        REGION: phase + name_of(row),
        **figure_cells(row, unit),
        "launches": f"{row.eager_work.launches:,}→{row.compiled_work.launches:,}",
        "roofline": "→".join(map(share_text, both)) if any(x is not None for x in both) else "",
    }
