"""Where a call's time goes on both sides, the ways to run the model, and how exact kernels are."""

from __future__ import annotations

import shlex
from dataclasses import replace

from tcw.compiler.trace import refs
from tcw.compiler.trace.precision import worst_output
from tcw.compiler.trace.records import KernelPrecision
from tcw.viewers.kit.figures import TimeUnit, unit_of
from tcw.viewers.kit.lines import line
from tcw.viewers.kit.spans import Line, Span
from tcw.viewers.panes import profiled
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row, text_rows
from tcw.viewers.panes.targets import ToKernel
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.accounts import AccountTable, account_tables
from tcw.viewers.tables.profile_lines import (
    account_lines,
    ceilings_lines,
    doubt_lines,
    memory_lines,
    modes_lines,
    notes_lines,
    precision_lines,
    trial_lines,
)
from tcw.viewers.words import plural


def content(view: View, width: int) -> Content:
    """Both sides, line by line, with what the lines do not explain."""
    profile = view.derived.profile
    if profile is None:
        return Content("account", rows=empty(width, *profiled.not_measured(view)))
    head, unit = profile.head, unit_of(profile.head)
    rows: list[Row] = []
    for table in account_tables(profile):
        if view.phase in ("", table.phase):
            rows += [*([BLANK] if rows else []), *_account(table, unit, width)]
    if not rows:
        rows = [BLANK, text_row((" no account of this call was recorded", "dim"))]
    for lines in (memory_lines(head), ceilings_lines(profile.ceilings)):
        rows += [BLANK, *text_rows(lines, width, indent=1)] if lines else []
    right: Line = ((f"{unit.name}, median of {plural(head.rounds, 'round')}", "dim"),)
    return Content("account", plain(head.what), right, rows, still=True)


def _account(found: AccountTable, unit: TimeUnit, width: int) -> list[Row]:
    head, *lines, call = account_lines(found, unit, width - 1, 1)
    rows = [text_row((f" {plain(found.phase)}", "strong"))] if found.phase else []
    rows += text_rows([head], width)
    said = [*((row.name, row.what) for row in found.rows), ("remainder", "")]
    for (name, what), text_line in zip(said, lines, strict=True):
        copies = f"{name}: {what}" if what else ""
        rows += text_rows([text_line], width, key=f"line:{name}", copies=copies)
    rows += text_rows([call], width, key=f"account:{found.phase}")
    return [*rows, *text_rows(doubt_lines(found, 1), width)]


# The ways to run it


def modes(view: View, width: int) -> Content:
    """Each way, against eager; then what tcw tried by itself."""
    profile = view.derived.profile
    if profile is None:
        return Content("modes", rows=empty(width, *profiled.not_measured(view)))
    rows = _modes(profile, width) if profile.modes else _no_modes(view, width)
    rows += [BLANK, *_trials(profile, width)]
    right: Line = ((plural(len(profile.modes), "way"), "dim"),) if profile.modes else ()
    return Content("modes", right=right, rows=rows, head=1 if profile.modes else 0)


def _no_modes(view: View, width: int) -> list[Row]:
    words = f"{profiled.command(view, '--modes')} measures them"
    return empty(width, "other modes not measured", words)


def _modes(profile: Profile, width: int) -> list[Row]:
    head, *lines = modes_lines(profile.modes, width - 1, 1)
    rows = text_rows([head], width)
    for mode, text_line in zip(profile.modes, lines, strict=True):
        rows += text_rows([text_line], width, key=f"mode:{mode.name}")
    return [*rows, *text_rows(notes_lines(profile.modes), width, indent=1)]


def _trials(profile: Profile, width: int) -> list[Row]:
    if not profile.trials:
        count = len(profile.suggestions)
        words = f"{plural(count, 'suggestion')} not tried: --try tries them" if count else ""
        return [text_row((f" {words}", "dim"))] if words else []
    rows = [text_row((" tried", "strong"))]
    for trial in profile.trials:
        copies = shlex.join(trial.options) or trial.words
        rows += text_rows(
            trial_lines(trial), width, key=f"trial:{trial.id}", copies=copies, indent=1
        )
    return rows


# How exact


def precision(view: View, width: int) -> Content:
    """Each kernel against float64, the wrong ones first."""
    profile = view.derived.profile
    precisions = profile.precision if profile is not None else ()
    if profile is None:
        return Content("precision", rows=empty(width, *profiled.not_measured(view)))
    if not precisions:
        words = f"{profiled.command(view, '--verify')} compares them"
        return Content("precision", rows=empty(width, "kernels not compared with float64", words))
    rank = {False: 0, True: 1, None: 2}
    ranked = sorted(precisions, key=lambda kernel_precision: rank[kernel_precision.within])
    head, *lines = precision_lines(
        ranked, lambda kernel_precision: _name(view, kernel_precision), width - 1, 1
    )
    rows = text_rows([head], width)
    for kernel_precision, row in zip(ranked, lines, strict=True):
        rows += _exact(view, kernel_precision, text_rows([row], width)[0], width)
    wrong = sum(kernel_precision.within is False for kernel_precision in precisions)
    words = (
        f"{wrong} wrong of {len(precisions)}" if wrong else f"{plural(len(precisions), 'kernel')}"
    )
    return Content(
        "precision", "against float64", ((words, "bad" if wrong else "dim"),), rows, head=1
    )


def _name(view: View, kernel_precision: KernelPrecision) -> str:
    kernel = view.recording.kernels.get(kernel_precision.kernel)
    return view.derived.called.title(kernel) if kernel is not None else kernel_precision.kernel


def _exact(view: View, kernel_precision: KernelPrecision, row: Row, width: int) -> list[Row]:
    rows = [
        replace(
            row,
            ref=refs.kernel(kernel_precision.kernel),
            at=ToKernel(kernel_precision.kernel),
            copies=view.recording.text(kernel_precision.repro)
            if kernel_precision.repro
            else plain(_name(view, kernel_precision)),
        )
    ]
    worst = worst_output(kernel_precision)
    notes: list[Span] = (
        [(kernel_precision.reason, "dim")] if worst is None else [(worst.note, "bad")]
    )
    if kernel_precision.within is False and kernel_precision.repro:
        notes.append(("the first outside its bound; y copies a file that shows it", "dim"))
    said = [line(("    ", "dim"), note, hang=4) for note in notes if note[0]]
    return [*rows, *text_rows(said, width)]
