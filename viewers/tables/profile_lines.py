"""What a profile measured: the account of both calls, ceilings, modes, precision, trials."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rich.cells import cell_len

from tcw.compiler.trace.precision import worst_output
from tcw.compiler.trace.records import (
    Account,
    Bandwidth,
    CallProfile,
    Ceilings,
    KernelPrecision,
    ModeRow,
    Trial,
)
from tcw.viewers.kit.cells import cut
from tcw.viewers.kit.figures import TimeUnit, cells_of, change_text, rate_text, share_text
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Line, Role, Span, text
from tcw.viewers.kit.table import GAP, Cell, heading, table
from tcw.viewers.summary.profile.accounts import (
    AccountTable,
    BothSides,
    is_doubtful,
    open_remainder,
)
from tcw.viewers.summary.profile.profile_verdict import mode_in_noise
from tcw.viewers.summary.profile.work import SideWork
from tcw.viewers.words import (
    NOT_MEASURED,
    PEAK_STEP,
    bytes_text,
    error_text,
    number,
    percent,
    plural,
    ratio_text,
    seconds_text,
    stepped_bytes_text,
)

WORK_ALIGN = "rrrrrr"
WORK_DROP = (4, 1, 3, 2)
"""Which columns of `work_cells` a narrow table drops first."""
_POINTS = 5
"""How many working sets have their bandwidth shown."""


def work_heads(unit: TimeUnit) -> list[Cell]:
    return [(word, "dim") for word in (unit.name, "launches", "bytes", "", "", "roof")]


def work_cells(work: SideWork, unit: TimeUnit, role: Role = "text") -> list[Cell]:
    """Time, launches, bytes, bytes and FLOPs a second, share of the roofline."""
    return [
        (unit.text(work.seconds), role),
        (f"{work.launches:,}", role),
        ("–" if work.bytes is None else bytes_text(work.bytes), role),
        (rate_text(work.bandwidth, "B/s"), "dim"),
        (rate_text(work.rate, "FLOP/s"), "dim"),
        (share_text(work.share), role if work.share is not None else "dim"),
    ]


def _some(curve: Sequence[Bandwidth]) -> list[Bandwidth]:
    """A few of many working sets, from the first to the last."""
    last = len(curve) - 1
    places = {round(last * at / (_POINTS - 1)) for at in range(_POINTS)}
    return [bandwidth for at, bandwidth in enumerate(curve) if at in places]


def ceilings_lines(ceilings: Ceilings | None) -> list[TextLine]:
    """What shares of the roofline are shares of."""
    if ceilings is None:
        return [heading("ceilings", NOT_MEASURED)]
    threads = f", {plural(ceilings.threads, 'thread')}" if ceilings.kind == "cpu" else ""
    kept = ", kept from an earlier run" if ceilings.kept else ""
    lines = [heading("ceilings", f"{ceilings.device}{threads}{kept}")]
    steps = [
        f"{rate_text(bandwidth.per_second, 'B/s')} at {bytes_text(bandwidth.bytes)}"
        for bandwidth in _some(ceilings.bandwidth)
    ]
    if steps:
        lines.append(line(("  copies    ", "dim"), " · ".join(steps), hang=12))
    rates = [f"{dtype} {rate_text(rate, 'FLOP/s')}" for dtype, rate in ceilings.rates.items()]
    if rates:
        lines.append(line(("  products  ", "dim"), " · ".join(rates), hang=12))
    if ceilings.note:
        lines.append(line((f"  {ceilings.note}", "dim"), hang=2))
    return lines


MODE = 26
"""Maximum number of cells of a mode's name."""
_MODE_HEADS = ("mode", "eager", "a call", "speed-up", "±", "compiled in", "peak", "pays after")
_MODE_DROP = (1, 6, 5, 4, 7)
"""What a narrow table drops: never the speed-up."""


def modes_lines(rows: Sequence[ModeRow], width: int, indent: int) -> list[TextLine]:
    """A head, then a line for each mode."""
    best = max((row.speedup for row in rows if row.time and row.name != "eager"), default=0.0)
    cells: list[list[Cell]] = [[(word, "dim") for word in _MODE_HEADS]]
    cells += [_mode(row, best) for row in rows]
    return table(cells, "lrrrrrrl", width, indent, _MODE_DROP)


def notes_lines(rows: Sequence[ModeRow]) -> list[TextLine]:
    """Why a mode was not timed, or what it came to."""
    return [
        line(("·  ", "dim"), row.name, (f"  {row.reason or row.note}", "dim"), hang=3)
        for row in rows
        if row.reason or row.note
    ]


def _mode(row: ModeRow, best: float) -> list[Cell]:
    name = cut(row.name, MODE)
    if row.time is None:
        nothing: Cell = ("–", "dim")
        return [name, nothing, nothing, nothing, "", "", "", ""]
    compared = row.name != "eager"
    quiet = mode_in_noise(row)
    role: Role = "dim" if quiet or not compared else "good" if row.speedup > 1 else "bad"
    return [
        (name, "strong" if compared and row.speedup == best else "text"),
        (seconds_text(row.eager.median) if compared and row.eager else "", "dim"),
        seconds_text(row.time.median),
        (ratio_text(row.speedup), role),
        (percent(row.noise), "dim"),
        seconds_text(row.compile_seconds) if row.compile_seconds else ("–", "dim"),
        ("–", "dim") if row.peak_bytes is None else stepped_bytes_text(row.peak_bytes, PEAK_STEP),
        _pays(row, quiet) if compared else "",
    ]


def _pays(row: ModeRow, quiet: bool) -> Cell:
    if quiet:
        return ("in noise", "dim")
    if row.pays_after is not None:
        return f"{number(row.pays_after)} calls"
    return ("never", "bad")


KERNEL = 40
"""Maximum number of cells of a kernel's name."""
_PRECISION_HEADS = ("", "kernel", "result", "error", "eager's", "bound", "")
_PRECISION_DROP = (2, 5, 4)
MARKS: dict[bool | None, Span] = {True: ("✓", "good"), False: ("✗", "bad"), None: ("·", "dim")}
"""By whether the results are within their bounds; None: not compared."""


def precision_lines(
    found: Sequence[KernelPrecision],
    name: Callable[[KernelPrecision], str],
    width: int,
    indent: int,
    note: Callable[[KernelPrecision], str] = lambda one: "",
) -> list[TextLine]:
    """A head, then a line for each kernel: its worst result. `note`: a last column, if it says
    anything."""
    rows: list[list[Cell]] = [[(word, "dim") for word in _PRECISION_HEADS]]
    rows += [
        _precision(precision, cut(name(precision), KERNEL), note(precision)) for precision in found
    ]
    return table(rows, "llfrrrf", width, indent, _PRECISION_DROP)


def _precision(precision: KernelPrecision, name: str, note: str) -> list[Cell]:
    worst = worst_output(precision)
    role: Role = "bad" if precision.within is False else "text"
    if worst is None:
        return [MARKS[precision.within], name, "", ("–", "dim"), "", "", (note, "dim")]
    return [
        MARKS[precision.within],
        (name, role),
        (worst.node, "dim"),
        (error_text(worst.error), role),
        (error_text(worst.eager_error), "dim"),
        (error_text(worst.bound), "dim"),
        (note, "bad" if role == "bad" else "dim"),
    ]


def trial_lines(trial: Trial) -> list[TextLine]:
    """The change with its options and its outcome, then its edits."""
    measured = trial.before is not None and trial.after is not None
    role = outcome_role(trial)
    glyph = "✓" if trial.kept else "✗" if measured and role == "bad" else "·"
    options = shlex.join(trial.options)
    head = line(
        (f"{glyph}  ", role),
        trial.words,
        (f"  {options}" if options else "", "faint"),
        "  ",
        *outcome(trial),
        hang=3,
    )
    return [head, *edits_lines(trial)]


def outcome(trial: Trial) -> Line:
    """`2.26 ms → 1.93 ms  -334 µs ±30.0 µs`; why it was not kept."""
    if trial.before is None or trial.after is None:
        return (text(trial.reason or NOT_MEASURED, "dim"),)
    spans: list[Span] = [
        (f"{seconds_text(trial.before.median)} → {seconds_text(trial.after.median)}  ", "text"),
        (change_text(trial.difference), outcome_role(trial)),
        (f" ±{seconds_text(trial.noise)}", "dim"),
    ]
    if trial.equal is False:
        spans.append(("  results differ", "bad"))
    if not trial.kept and trial.reason:
        spans.append(text(f"  {trial.reason}", "dim"))
    return tuple(spans)


def outcome_role(trial: Trial) -> Role:
    if trial.before is None or trial.after is None or abs(trial.difference) <= trial.noise:
        return "dim"
    return "good" if trial.difference < 0 else "bad"


def edits_lines(trial: Trial) -> list[TextLine]:
    """A trial's source edits, as the hunks of a unified diff."""
    lines: list[TextLine] = []
    for row in trial.diff.splitlines():
        if row.startswith("+++"):
            name = row.removeprefix("+++ b/")
            lines.append(line(("     tried on a copy of ", "dim"), (name, "dim"), hang=5))
        elif row.startswith(("@@", "-", "+")) and not row.startswith("---"):
            role: Role = "dim" if row[0] == "@" else "good" if row[0] == "+" else "bad"
            lines.append(line("     ", (row, role), hang=7))
    return lines


BARS: tuple[Role, Role] = ("bar", "bar-accent")
SHORTEST, LONGEST = 8, 16
"""Width of a bar: the cells that the table leaves."""


def account_lines(found: AccountTable, unit: TimeUnit, width: int, indent: int) -> list[TextLine]:
    """A head, a line for each of the rows, the remainder, and the call. Bars where they fit."""
    rows: list[list[Cell]] = [
        ["", ("eager", "dim"), "", ("compiled", "dim"), "", ""],
        *(
            [account_row.name, *_times(found, account_row.seconds, unit), (account_row.what, "dim")]
            for account_row in found.rows
        ),
        _remainder(found, unit),
        [("call", "strong"), *_call(found, unit), ""],
    ]
    align, drop = "lrrrrf", [2, 4, 5]
    spare = width - max(
        cell_len(text_line.text) for text_line in table(rows, align, 10 * width, indent)
    )
    bar = min(LONGEST, spare // 2 - GAP)
    if bar >= SHORTEST:
        drawn = [
            (None, None),
            *(account_row.seconds for account_row in found.rows),
            found.remainder,
            (None, None),
        ]
        most = max(one or 0.0 for both in (*drawn, found.measured) for one in both)
        for row, seconds in zip(rows, drawn, strict=True):
            row[-1:-1] = [
                ("█" * cells_of(value or 0.0, most, bar), role)
                for value, role in zip(seconds, BARS, strict=True)
            ]
        align, drop = "lrrrrllf", []
    return table(rows, align, width, indent, drop)


def doubt_lines(found: AccountTable, indent: int) -> list[TextLine]:
    """Why the lines of a side have no shares."""
    if not found.doubtful:
        return []
    words = "rounds differ too much: the lines and the call are of different rounds, so "
    return [line(" " * indent, (words + _WHOSE[found.doubtful], "warn"), hang=indent)]


_WHOSE = {
    ("eager",): "eager has no shares",
    ("compiled",): "the compiled side has no shares",
    ("eager", "compiled"): "neither side has shares",
}


def _times(found: AccountTable, both: BothSides, unit: TimeUnit) -> list[Cell]:
    cells: list[Cell] = []
    for side, seconds in zip(found.sides, both, strict=True):
        known = side is not None and seconds is not None
        cells.append(unit.text(seconds) if known else ("–", "dim"))
        cells.append((_share(side, seconds), "dim"))
    return cells


def _remainder(found: AccountTable, unit: TimeUnit) -> list[Cell]:
    cells: list[Cell] = ["remainder"]
    more = False
    for side in found.sides:
        more = more or (side is not None and side.remainder < 0 and open_remainder(side))
        role: Role = "bad" if side is not None and open_remainder(side) else "dim"
        seconds = side.remainder if side is not None else None
        cells += [(unit.text(seconds), role), (_share(side, seconds), role)]
    what = "measured, minus all of the above"
    if found.in_noise:
        what = f"minus all of the above (in noise: {' and '.join(found.in_noise)})"
    if more:
        return [*cells, ("below 0: the parts were timed in other, slower rounds", "warn")]
    return [*cells, (what, "dim")]


def _call(found: AccountTable, unit: TimeUnit) -> list[Cell]:
    return [cell for one in found.measured for cell in ((unit.text(one), "strong"), "")]


def _share(account: Account | None, seconds: float | None) -> str:
    if account is None or seconds is None or account.measured.median <= 0:
        return ""
    if is_doubtful(account):
        return ""
    share = seconds / account.measured.median
    return f"-{percent(-share)}" if share < 0 else percent(share)


def memory_lines(head: CallProfile) -> list[TextLine]:
    """The bytes of both calls, those that were measured."""
    rows: list[list[Cell]] = []
    for what, eager, compiled, step in (
        ("peak of one call", head.eager_peak_bytes, head.compiled_peak_bytes, PEAK_STEP),
        ("saved for the backward", head.eager_saved_bytes, head.compiled_saved_bytes, 1),
    ):
        if eager is not None or compiled is not None:
            change = _change(eager, compiled, step)
            rows.append([what, _size(eager, step), "→", _size(compiled, step), (change, "dim")])
    return [heading("memory", "eager → compiled"), *table(rows, "lrlrl", 100, 2)] if rows else []


def _size(size: int | None, step: int) -> Cell:
    return (NOT_MEASURED, "dim") if size is None else stepped_bytes_text(size, step)


def _change(eager: int | None, compiled: int | None, step: int) -> str:
    if eager is None or compiled is None or abs(compiled - eager) < step:
        return ""
    return f"{bytes_text(abs(compiled - eager))} {'more' if compiled > eager else 'less'}"
