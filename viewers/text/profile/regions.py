"""The table of regions with its picture: time on both sides, and the difference as a bar."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from viewers.kit.bars import Bars
from viewers.kit.cells import cut, keep_end
from viewers.kit.figures import Unit, share_text
from viewers.kit.spans import Role
from viewers.places import FileNames
from viewers.plain import plain
from viewers.summary.profile import Profile, RegionRow, Sort, Sums, Waterfall, ordered
from viewers.summary.profile.where import where
from viewers.text.lines import Line, line
from viewers.words import numbers_text

WIDE = 112
"""Width from which launches and the share of the roofline fit."""
_LEAST_BAR = 6
_SMALL = 0.005
"""Share of a call below which a row is not shown unless asked for."""
_RUNS = 3
"""Most runs of lines listed."""
_FEW, _MANY = 8, 24
"""Least and most rows shown."""
_LINE, _REGION = 1, 2
"""Places of two columns."""
_ROLES: dict[str, Role] = {"lost": "bad", "won": "good", "noise": "dim"}


def regions_table(
    profile: Profile, names: FileNames, width: int, sort: Sort, top: int | None, unit: Unit
) -> list[Line]:
    fall = profile.waterfall(sort)
    shown = _mattering(fall) if top is None else fall.rows[:top]
    wide = width >= WIDE
    files = {one.file for row in shown for one in row.locations[:1]}
    cells = [_row(row, names, unit, wide, len(files) > 1) for row in shown]
    chosen = {row.key for row in shown}
    left_out = [row for row in fall.rows if row.key not in chosen]
    tails = _tails(fall, left_out, "smaller" if top is None else "more", unit, wide)
    if len(fall.quiet) == 1:
        alone = _row(fall.quiet[0], names, unit, wide, len(files) > 1)
        tails.insert(-1, [*alone[:2], f"▸ {alone[2]}", *alone[3:]])
    whole = _sums("sum", fall.total, unit, wide)
    head = ["", "line", "region", "eager", "compiled", "Δ", "±"]
    head += ["launches", "roofline"] if wide else []
    sizes = [
        max(cell_len(one[at]) for one in (head, *cells, *tails, whole)) for at in range(len(head))
    ]
    longer = len(files) > 1 or any(where(row) for row in (*shown, *fall.quiet[:1]))
    sizes[1] = min(sizes[1], 24 if wide else 16 if longer else 10)
    room = width - sum(sizes) - 2 * len(sizes) - 2
    least = 2 * _LEAST_BAR + 1
    if room < least:
        sizes[2] = max(10, sizes[2] - (least - room))
    room = min(60, max(least, width - sum(sizes) - 2 * len(sizes) - 2))
    lost = max((row.difference for row in shown if row.difference > 0), default=0.0)
    won = max((-row.difference for row in shown if row.difference < 0), default=0.0)
    bars = Bars.for_values(lost, won, room - 1, _LEAST_BAR)
    lines = [_line(head, sizes, ["dim"] * len(head), "lost".rjust(bars.left - 1) + " │ won", "dim")]
    for row, texts in zip(shown, cells, strict=True):
        role = _ROLES[row.standing]
        roles: list[Role] = ["dim", "text", "text", "text", "text", role, "dim", "dim", "dim"]
        value = row.difference
        bar = f"{bars.lost(value)}│" if value > 0 else f"{' ' * bars.left}│{bars.won(-value)}"
        lines.append(_line(texts, sizes, roles, bar, role))
    dim: list[Role] = ["dim"] * 9
    lines += [_line(texts, sizes, dim, " " * bars.left + "│", "dim") for texts in tails]
    lines.append(line(("─" * (sum(sizes) + 2 * len(sizes) + room), "dim"), fixed=True))
    strong: list[Role] = ["strong"] * 5
    roles = [*strong, "dim" if fall.total.in_noise else "strong", "dim"]
    verdict = "in noise" if fall.total.in_noise else ""
    lines.append(_line(whole, sizes, [*roles, "dim", "dim"], f"  {verdict}", "dim"))
    return lines


def _mattering(fall: Waterfall) -> tuple[RegionRow, ...]:
    """The rows that differ by more than a small share of the call, and always at least a few."""
    least = _SMALL * max(fall.total.eager, fall.total.compiled)
    largest = ordered(fall.rows, "difference")
    kept = {row.key for row in largest[:_FEW]}
    kept |= {row.key for row in largest[:_MANY] if abs(row.difference) >= least}
    return tuple(row for row in fall.rows if row.key in kept)


def _tails(
    fall: Waterfall, left_out: Sequence[RegionRow], word: str, unit: Unit, wide: bool
) -> list[list[str]]:
    """What the rows do not show: rows beyond the top, rows in the noise, the rest of the call."""
    tails = []
    if left_out:
        sums = Sums(
            eager=sum(row.eager.median for row in left_out if row.eager),
            compiled=sum(row.compiled.median for row in left_out if row.compiled),
            noise=sum(row.noise for row in left_out),
        )
        tails.append(_sums(f"… {len(left_out)} {word}", sums, unit, wide))
    if len(fall.quiet) > 1:
        what = "in noise" if all(row.known for row in fall.quiet) else "in noise or unknown"
        same = sum(row.same_calls for row in fall.quiet)
        what += f", {same} the same calls" if same else ""
        tails.append(_sums(f"▸ {len(fall.quiet)} {what}", fall.quiet_sums, unit, wide))
    tails.append(_sums("  host and rest", fall.rest, unit, wide))
    return tails


def _row(row: RegionRow, names: FileNames, unit: Unit, wide: bool, file: bool) -> list[str]:
    times = f" ×{row.count}" if row.count > 1 else ""
    phase = f"{row.phase}: " if row.phase in ("backward", "step") else ""
    texts = [
        rank_text(row),
        lines_of(row, names, file),
        plain(f"{phase}{row.label}") + times,
        unit.text(row.eager.median if row.eager else None),
        unit.text(row.compiled.median if row.compiled else None),
        unit.signed(row.difference),
        unit.text(row.noise),
    ]
    if wide:
        launches = f"{row.eager_work.launches:,}→{row.compiled_work.launches:,}"
        both = (row.eager_work.share, row.compiled_work.share)
        shares = "→".join(map(share_text, both)) if any(one is not None for one in both) else ""
        texts += [launches, shares]
    return texts


def _sums(label: str, sums: Sums, unit: Unit, wide: bool) -> list[str]:
    texts = [
        "",
        "",
        label,
        unit.text(sums.eager),
        unit.text(sums.compiled),
        unit.signed(sums.difference),
        unit.text(sums.noise),
    ]
    if label == "sum":
        texts[1:3] = ["sum", ""]
    return [*texts, "", ""] if wide else texts


def rank_text(row: RegionRow) -> str:
    """`2`, `2=` if tied; "" in the noise."""
    return f"{row.rank}{'=' if row.tied else ''}" if row.rank else ""


def lines_of(row: RegionRow, names: FileNames, file: bool) -> str:
    """`17–20`, or `block.py:17–20`, of the first file if there are several. Without a line, the
    module, or whatever is known."""
    if not row.locations:
        return plain(where(row))
    first = row.locations[0].file
    numbers = numbers_text(one.line for one in row.locations if one.file == first)
    runs = numbers.split(", ")
    if len(runs) > _RUNS:
        numbers = f"{runs[0]} … {runs[-1]}"
    more = " …" if any(one.file != first for one in row.locations) else ""
    short = plain(names.short(first)).rpartition("/")[2]
    return (f"{short}:{numbers}" if file else numbers) + more


def _line(
    texts: Sequence[str], sizes: Sequence[int], roles: Sequence[Role], bar: str, role: Role
) -> Line:
    pieces: list[tuple[str, Role]] = []
    sizes = list(sizes)
    if not texts[_LINE]:  # a label without a line takes the room that the line leaves
        spare = min(sizes[_LINE], max(0, cell_len(texts[_REGION]) - sizes[_REGION]))
        sizes[_LINE] -= spare
        sizes[_REGION] += spare
    for at, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        fit = keep_end(text, size) if at == _LINE else cut(text, size)
        pad = " " * (size - cell_len(fit))
        gap = "  " if at else " "
        pieces.append((gap + fit + pad if at <= _REGION else gap + pad + fit, roles[at]))
    return line(*pieces, "  ", (bar, role), fixed=True)
