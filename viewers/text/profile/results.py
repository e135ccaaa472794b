"""The parts of a profile's report below its causes: account, kernels, precision, modes, trials."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tcw.compiler.trace.precision import error_over_bound, worst_output
from tcw.compiler.trace.records import CompiledStep, KernelPrecision, ModeRow, Trial
from tcw.viewers.collected import grouped
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.figures import TimeUnit, share_text
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.kit.spans import Line, Role, width_of
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.labels import KernelNames, kernel_label
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.accounts import account_tables
from tcw.viewers.summary.profile.causes.cause import chosen
from tcw.viewers.summary.profile.causes.step_words import bare
from tcw.viewers.summary.profile.rows import RegionRow, Sort, ordered, where
from tcw.viewers.summary.profile.waterfall import Sums, Waterfall
from tcw.viewers.summary.profile.work import work_of
from tcw.viewers.tables.profile_lines import (
    WORK_ALIGN,
    account_lines,
    doubt_lines,
    modes_lines,
    notes_lines,
    precision_lines,
    trial_lines,
    work_cells,
    work_heads,
)
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
from tcw.viewers.words import listed, numbers_text, plural

_WORST = 4
"""Kernels listed, besides the first that is wrong."""
_REASONS, _NAMES = 4, 3
"""Maximum number of reasons for not comparing, and kernels listed for each."""


def precision_section(profile: Profile, width: int) -> list[TextLine]:
    """How many kernels were compared, the largest errors, and the first wrong kernel."""
    precisions = profile.precision
    if not precisions:
        return []
    compared = [precision for precision in precisions if precision.within is not None]
    wrong = [precision for precision in compared if precision.within is False]
    words = f"{plural(len(compared), 'kernel')} against float64"
    words += f"; {len(wrong)} wrong" if wrong else ", all within bounds"
    numerics = profile.index.recording.numerics
    if not wrong and numerics is not None and numerics.within is False:
        words += ", but the results of the whole call are wrong"
    if len(precisions) > len(compared):
        words += f"; {len(precisions) - len(compared)} not compared"
    first = wrong[:1]
    shown = tuple(dict.fromkeys((*first, *sorted(compared, key=_excess, reverse=True)[:_WORST])))

    def name(precision: KernelPrecision) -> str:
        return _name(profile, precision)

    def note(precision: KernelPrecision) -> str:
        worst = worst_output(precision)
        return "the first that is wrong" if precision in first else worst.note if worst else ""

    lines = [BLANK, heading("precision", words), *precision_lines(shown, name, width, 2, note)]
    return [*lines, *_not_compared(profile, precisions)]


def _not_compared(profile: Profile, found: Sequence[KernelPrecision]) -> list[TextLine]:
    """The kernels that were not compared, by reason."""
    left = grouped(
        (precision.reason, _name(profile, precision))
        for precision in found
        if precision.within is None
    )
    lines = []
    for reason, names in list(left.items())[:_REASONS]:
        which = listed(names, _NAMES)
        why = f"{which}: {reason}" if reason else which
        lines.append(line(("  not compared: ", "dim"), (why, "dim"), hang=4))
    if len(left) > _REASONS:
        lines.append(line((f"  … {plural(len(left) - _REASONS, 'reason')} more", "dim")))
    return lines


def _excess(precision: KernelPrecision) -> float:
    worst = worst_output(precision)
    return error_over_bound(worst) if worst is not None else 0.0


def _name(profile: Profile, precision: KernelPrecision) -> str:
    recording = profile.index.recording
    kernel = recording.kernels.get(precision.kernel)
    return KernelNames(recording).title(kernel) if kernel else precision.kernel


def modes_section(rows: tuple[ModeRow, ...], width: int) -> list[TextLine]:
    if not rows:
        return []
    head = heading("modes", "each in its own process, with eager in the same rounds")
    return [BLANK, head, *modes_lines(rows, width, 2), *notes_lines(rows)]


def trials_section(trials: tuple[Trial, ...]) -> list[TextLine]:
    if not trials:
        return []
    lines = [
        BLANK,
        heading("tried", plural(sum(trial.kept for trial in trials), "change") + " kept"),
    ]
    for trial in trials:
        lines += trial_lines(trial)
    best = chosen(trials)
    if best is not None:
        lines.append(line(("   use it with: ", "dim"), best.command, hang=3))
        if best.diff:
            said = "your files are unchanged; --patch FILE writes the edits as a patch"
            lines.append(line((f"   {said}", "dim"), hang=3))
    return lines


_OPERATIONS = 4
"""At most this many names of operations are listed."""


def accounts_lines(profile: Profile, width: int, unit: TimeUnit) -> list[TextLine]:
    lines: list[TextLine] = []
    for account_table in account_tables(profile):
        what = (
            f"{account_table.phase} alone"
            if account_table.phase
            else f"where the {unit.name} of a call go"
        )
        lines += [BLANK, heading("account", what), *account_lines(account_table, unit, width, 2)]
        lines += doubt_lines(account_table, 2)
        if account_table.phase == "step":
            lines += _step(profile, width, unit)
    return lines


def _step(profile: Profile, width: int, unit: TimeUnit) -> list[TextLine]:
    """The optimizer's operations and its compiled steps, grouped by name."""
    rows: list[list[Cell]] = []
    for row in profile.step_rows:
        eager = _named(operation.operation for operation in row.operations)
        compiled = _named(step.name for step in row.steps)
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
    counts = Counter(bare(name) for name in names)
    shown = [
        f"{name} ×{count}" if count > 1 else name for name, count in counts.most_common(_OPERATIONS)
    ]
    more = [f"{len(counts) - _OPERATIONS} more"] if len(counts) > _OPERATIONS else []
    return plain(", ".join(shown + more))


def kernels_lines(
    profile: Profile, names: FileNames, width: int, top: int | None, unit: TimeUnit
) -> list[TextLine]:
    """Kernels and calls of the compiled side, slowest first, repeated layers merged."""
    timed = [step for step in profile.index.steps.values() if step.time is not None]
    groups = grouped((_stem(profile, step), step) for step in timed)
    works = [(key, steps, work_of(profile.index, steps)) for key, steps in groups.items()]
    works.sort(key=lambda one: -(one[2].seconds or 0.0))
    shown = works[: top or 8]
    if not shown:
        return []
    rows: list[list[Cell]] = [[("kernel", "dim"), ("line", "dim"), *work_heads(unit)]]
    for (name, place), steps, work in shown:
        rows.append(
            [
                name if len(steps) == 1 else f"{name} ×{len(steps)}",
                (place, "dim"),
                *work_cells(work, unit),
            ]
        )
    more = len(works) - len(shown)
    count = plural(len(profile.index.steps), "kernel or call", "kernels and calls")
    right = f"{count}, slowest first" + (f"; {more} more" if more else "")
    return [BLANK, heading("kernels", right), *table(rows, f"fe{WORK_ALIGN}", width, 2)]


def _stem(profile: Profile, step: CompiledStep) -> tuple[str, str]:
    """What kernels of repeated layers have in common: words and lines."""
    kernel = profile.index.kernel_of(step)
    places = kernel.locations if kernel else ()
    if kernel is None:
        region = profile.region_of(step.id)
        places = region.locations if region else ()
    at = numbers_text(place.line for place in places if place.file == places[0].file)
    row = None if at else profile.row_with(step.id)
    at = at or (plain(where(row)) if row is not None else "")
    if kernel is None or not kernel.generated:
        return (bare(step.name), at)
    return (re.sub(r"_\d+$", "", kernel_label(kernel)), at)


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
    files = list(
        dict.fromkeys(location.file for row in shown or alone for location in row.locations[:1])
    )
    main = files[0] if len(files) == 1 else ""
    room = place_room(width)
    cells = [_region_row(row, place_of(row, names, main, room), unit) for row in (*shown, *alone)]
    chosen = {row.key for row in shown}
    left_out = [row for row in fall.rows if row.key not in chosen]
    tails = _tails(fall, left_out, "smaller" if top is None else "more", unit)
    if alone:
        quiet = cells.pop()
        tails.insert(-1, {**quiet, REGION: f"▸ {quiet[REGION]}"})
    noisy = fall.total.in_noise
    whole = {REGION: "sum, in noise" if noisy else "sum", **figure_cells(fall.total, unit)}
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
    total = body(whole, "strong", "dim" if noisy else "strong")
    bars = drawn.bar_gap + drawn.bars.left + drawn.bars.right + 1 if drawn.bars else 0
    lines.append(line(("─" * min(width, width_of(total) + bars), "dim"), fixed=True))
    return [*lines, TextLine(total, fixed=True)]


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
    return [{REGION: name, **figure_cells(sums, unit)} for name, sums in named]


def _region_row(row: RegionRow, place: str, unit: TimeUnit) -> dict[str, str]:
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
