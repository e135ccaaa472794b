"""Where a call's time goes on both sides, the ways to run the model, and how exact kernels are."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from compiler.trace import refs
from compiler.trace.precision import worst_output
from compiler.trace.records import CallProfile, Ceilings, KernelPrecision, ModeRow
from viewers.kit.bars import cells_of
from viewers.kit.cells import cut, pad, pad_left, wrap
from viewers.kit.figures import TimeUnit, rate_text, unit_of
from viewers.kit.spans import Line, Role, Span, text
from viewers.panes import profiled
from viewers.panes.kernel_names import kernel_title
from viewers.panes.profiled import role_of
from viewers.panes.rows import BLANK, Content, Row, empty
from viewers.panes.targets import ToKernel
from viewers.panes.view import View
from viewers.panes.why import diff_rows, trial_words
from viewers.plain import plain
from viewers.summary.profile import Profile
from viewers.summary.profile.accounts import AccountTable, Both, account_tables
from viewers.summary.profile.verdict import mode_in_noise
from viewers.words import bytes_text, error_text, number, percent, plural, ratio_text, seconds_text

NAME, FIGURE, ERROR = 14, 11, 10
BAR, WHAT = 16, 20
"""Cells of a bar; those that words have at least where there are bars, too."""
BARS: tuple[Role, ...] = ("bar", "bar-accent")


def content(view: View, width: int) -> Content:
    """Both sides, line by line, with what the lines do not explain."""
    profile = view.facts.profile
    if profile is None:
        return Content("account", rows=empty(width, *profiled.not_measured(view)))
    head, unit = profile.head, unit_of(profile.head)
    rows: list[Row] = []
    for one in account_tables(profile):
        if view.phase in ("", one.phase):
            rows += [*([BLANK] if rows else []), *_account(one, unit, width)]
    if not rows:
        rows = [BLANK, Row(body=((" no account of this call was recorded", "dim"),))]
    rows += [BLANK, *_memory(head), BLANK, *_ceilings(profile.ceilings, width)]
    right: Line = ((f"{unit.name}, median of {plural(head.rounds, 'round')}", "dim"),)
    return Content("account", plain(head.what), right, rows, still=True)


def _account(found: AccountTable, unit: TimeUnit, width: int) -> list[Row]:
    most = max(one for one in found.measured if one is not None) or 1.0
    room = width - NAME - 2 * FIGURE - 3
    bars = BAR if room >= 2 * BAR + WHAT else 0
    head: Role = "strong" if found.phase else "dim"
    rows = [_row(found.phase, ["eager", "compiled"], head, "dim")]
    for one in found.rows:
        rows.append(_line(one.name, one.seconds, one.what, unit, most, bars, width))
    known = [one for one in found.sides if one is not None]
    words = "in noise" if len(found.in_noise) == len(known) else "unexplained"
    rows.append(_line("remainder", found.remainder, words, unit, most, bars, width))
    rows.append(Row(body=(("─" * (NAME + 2 * FIGURE), "faint"),)))
    total = _row("measured", [unit.text(one) for one in found.measured], "strong", "strong")
    closes = [
        percent(abs(one.remainder) / one.measured.median) for one in known if one.measured.median
    ]
    words = f"  closes within {' and '.join(closes)}" if closes else ""
    fits = NAME + 2 * FIGURE + len(words) <= width
    key = f"account:{found.phase}"
    return [*rows, Row(body=(*total.body, (words if fits else "", "dim")), key=key)]


def _row(name: str, figures: list[str], role: Role, figures_role: Role) -> Row:
    spans: list[Span] = [(f" {pad(plain(name), NAME - 1)}", role)]
    spans += [(pad_left(one, FIGURE), figures_role) for one in figures]
    return Row(body=tuple(spans))


def _line(
    name: str,
    values: Both,
    what: str,
    unit: TimeUnit,
    most: float,
    bars: int,
    width: int,
) -> Row:
    quiet = name == "remainder"
    role: Role = "dim" if quiet else "text"
    body = _row(name, [unit.text(value) for value in values], role, role).body
    spans: list[Span] = [("  ", "text")]
    for value, role in zip(values, BARS if bars else (), strict=False):
        cells = cells_of(value or 0.0, most, bars)
        spans.append((pad("█" * cells, bars + 1), role))
    room = width - NAME - 2 * FIGURE - 3 - (2 * bars + 2 if bars else 0)
    spans.append((cut(plain(what), max(0, room)), "dim"))
    return Row(body=(*body, *spans), key=f"line:{name}", copies=f"{name}: {what}")


def _memory(head: CallProfile) -> list[Row]:
    rows = []
    for name, eager, compiled in (
        ("memory peak", head.eager_peak_bytes, head.compiled_peak_bytes),
        ("saved", head.eager_saved_bytes, head.compiled_saved_bytes),
    ):
        if eager is None and compiled is None:
            continue
        figures = [NOT if size is None else bytes_text(size) for size in (eager, compiled)]
        rows.append(_row(name, figures, "text", "text"))
    return rows


NOT = "–"


def _ceilings(found: Ceilings | None, width: int) -> list[Row]:
    """What shares of the roofline are shares of."""
    if found is None:
        return [Row(body=((" the machine's ceilings were not measured", "dim"),))]
    threads = f", {plural(found.threads, 'thread')}" if found.kind == "cpu" else ""
    kept = ", kept from an earlier run" if found.kept else ""
    head = f"{found.device}{threads}: ceilings{kept}"
    rows = [Row(body=((f" {line}", "dim"),)) for line in wrap(head, width - 2)]
    sizes = [
        f"{rate_text(one.per_second, 'B/s')} of {bytes_text(one.bytes)}" for one in found.bandwidth
    ]
    rates = [f"{plain(name)} {rate_text(rate, 'FLOP/s')}" for name, rate in found.rates.items()]
    for words in ("  ·  ".join(sizes), "  ·  ".join(rates)):
        rows += [Row(body=((f" {line}", "faint"),)) for line in wrap(words, width - 2)]
    return rows


# The ways to run it


def modes(view: View, width: int) -> Content:
    """Each way, against eager; then what tcw tried by itself."""
    profile = view.facts.profile
    if profile is None:
        return Content("modes", rows=empty(width, *profiled.not_measured(view)))
    rows = _modes(profile, width) if profile.modes else _no_modes(view, width)
    rows += [BLANK, *_trials(profile, width)]
    right: Line = ((plural(len(profile.modes), "way"), "dim"),) if profile.modes else ()
    return Content("modes", right=right, rows=rows, head=1 if profile.modes else 0)


def _no_modes(view: View, width: int) -> list[Row]:
    start = view.recording.start
    file = plain(view.facts.names.short(start.settings.file)) if start else "FILE"
    return empty(width, "other modes not measured", f"tcw profile {file} --modes measures them")


_COLUMNS: tuple[tuple[str, int], ...] = (
    ("a call", 11), ("faster", 8), ("pays after", 14), ("compiled in", 12), ("±", 6), ("peak", 9),
)  # fmt: skip
"""Head and cells, the least needed last: those go where there is no room."""
_STANDS = ("a call", "faster", "±", "compiled in", "peak", "pays after")
"""How they stand."""


def _modes(profile: Profile, width: int) -> list[Row]:
    unit = unit_of(profile.head)
    name = min(26, max(len(one.name) for one in profile.modes) + 1)
    room, fitting = width - name - 1, dict[str, int]()
    for head, cells in _COLUMNS:
        room -= cells
        if room < 0:
            break
        fitting[head] = cells
    shown = [(head, fitting[head]) for head in _STANDS if head in fitting]
    heads = [
        (pad_left(f"{unit.name} {h}" if h == "a call" else h, cells), "dim") for h, cells in shown
    ]
    rows = [Row(body=((" " + pad("", name), "dim"), *heads))]  # type: ignore[arg-type]
    best = max((m.speedup for m in profile.modes if m.time and m.name != "eager"), default=0.0)
    for one in profile.modes:
        loud = one.speedup == best and one.name != "eager"
        rows.append(_mode(one, name, shown, unit, loud, width))
    return rows


def _mode(
    one: ModeRow,
    name: int,
    shown: Sequence[tuple[str, int]],
    unit: TimeUnit,
    loud: bool,
    width: int,
) -> Row:
    start: Span = (" " + pad(cut(plain(one.name), name - 1), name), "strong" if loud else "text")
    if one.time is None:
        reason = cut(plain(one.reason or "not measured"), width - name - 4)
        return Row(body=(start, (f"   {reason}", "dim")), key=f"mode:{one.name}")
    words = {
        "a call": unit.text(one.time.median),
        "peak": NOT if one.peak_bytes is None else bytes_text(one.peak_bytes),
    }
    noisy = mode_in_noise(one)
    if one.name != "eager":
        pays = "never" if one.pays_after is None else f"{number(one.pays_after)} calls"
        words |= {
            "faster": ratio_text(one.speedup),
            "±": percent(one.noise),
            "compiled in": seconds_text(one.compile_seconds),
            "pays after": "in noise" if noisy else pays,
        }
    role = role_of(1 - one.speedup, noisy)
    spans: list[Span] = [
        (pad_left(words.get(head, ""), cells), role if head == "faster" else "text")
        for head, cells in shown
    ]
    return Row(body=(start, *spans), key=f"mode:{one.name}")


def _trials(profile: Profile, width: int) -> list[Row]:
    if not profile.trials:
        count = len(profile.suggestions)
        words = f"{plural(count, 'suggestion')} not tried: --try tries them" if count else ""
        return [Row(body=((f" {words}", "dim"),))] if words else []
    unit = unit_of(profile.head)
    rows = [Row(body=((" tried", "strong"),))]
    for one in profile.trials:
        words, role = trial_words(one, unit)
        mark: Span = (" ✓ ", "good") if one.kept else (" · ", "dim")
        options = shlex.join(one.options)
        rows.append(
            Row(
                body=(mark, text(one.words, "text"), (f"   {plain(options)}", "faint")),
                key=f"trial:{one.id}",
                copies=options or one.words,
            )
        )
        rows += [Row(body=((f"     {line}", role),)) for line in wrap(words, width - 6)]
        rows += diff_rows(one, width)
    return rows


# How exact


def precision(view: View, width: int) -> Content:
    """Each kernel against float64, the wrong ones first."""
    profile = view.facts.profile
    found = profile.precision if profile is not None else ()
    if profile is None:
        return Content("precision", rows=empty(width, *profiled.not_measured(view)))
    if not found:
        start = view.recording.start
        file = plain(view.facts.names.short(start.settings.file)) if start else "FILE"
        words = f"tcw profile {file} --verify compares them"
        return Content("precision", rows=empty(width, "kernels not compared with float64", words))
    rank = {False: 0, True: 1, None: 2}
    errors = 3 if width >= 60 else 2
    heads = tuple((pad_left(one, ERROR), "dim") for one in ("error", "eager", "bound")[:errors])
    name = pad("kernel", max(8, width - 4 - errors * ERROR))
    rows = [Row(body=(("   " + name, "dim"), *heads))]  # type: ignore[arg-type]
    for one in sorted(found, key=lambda one: rank[one.within]):
        rows += _exact(view, one, width, errors)
    wrong = sum(one.within is False for one in found)
    words = f"{wrong} wrong of {len(found)}" if wrong else f"{plural(len(found), 'kernel')}"
    return Content(
        "precision", "against float64", ((words, "bad" if wrong else "dim"),), rows, head=1
    )


def _exact(view: View, one: KernelPrecision, width: int, errors: int) -> list[Row]:
    kernel = view.recording.kernels.get(one.kernel)
    name = plain(kernel_title(view.facts, kernel) if kernel is not None else one.kernel)
    room = max(8, width - 4 - errors * ERROR)
    mark: Span = {True: (" ✓ ", "good"), False: (" ✗ ", "bad"), None: (" · ", "dim")}[one.within]  # type: ignore[assignment]
    worst = worst_output(one)
    if worst is None:
        words = cut(plain(one.reason or "not compared"), errors * ERROR - 2)
        figures: Line = (("  " + words, "dim"),)
    else:
        values = (worst.error, worst.eager_error, worst.bound)[:errors]
        role: Role = "bad" if one.within is False else "text"
        figures = tuple((pad_left(error_text(value), ERROR), role) for value in values)
    rows = [
        Row(
            body=(mark, (pad(cut(name, room - 1), room), "text"), *figures),
            ref=refs.kernel(one.kernel),
            at=ToKernel(one.kernel),
            opens=ToKernel(one.kernel),
            copies=view.recording.text(one.repro) if one.repro else name,
        )
    ]
    if worst is not None and worst.note:
        rows.append(Row(body=(("     ", "text"), text(worst.note, "bad"))))
    if one.within is False:
        said = "the first outside its bound; y copies a file that shows it" if one.repro else ""
        rows += [Row(body=((f"     {line}", "dim"),)) for line in wrap(said, width - 6) if line]
    return rows
