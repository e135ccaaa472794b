"""Other results than times: precision of each kernel, memory, other modes, what was tried."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.trace.precision import excess, worst_output
from compiler.trace.records import CallProfile, KernelPrecision, ModeRow, Trial
from viewers.kit.figures import change_text
from viewers.kit.lines import BLANK, Line, line
from viewers.kit.spans import Role
from viewers.kit.table import Cell, heading, table
from viewers.labels import kernel_label
from viewers.summary.profile import Profile
from viewers.summary.profile.tried import chosen
from viewers.summary.profile.verdict import mode_in_noise
from viewers.words import (
    bytes_text,
    error_text,
    number,
    percent,
    plural,
    ratio_text,
    seconds_text,
)

_REASONS, _NAMES = 4, 3
"""Most reasons for not comparing, and kernels listed for each."""


def memory_lines(head: CallProfile) -> list[Line]:
    rows: list[list[Cell]] = []
    for what, eager, compiled in (
        ("peak of one call", head.eager_peak_bytes, head.compiled_peak_bytes),
        ("saved for the backward", head.eager_saved_bytes, head.compiled_saved_bytes),
    ):
        if eager is not None or compiled is not None:
            rows.append(
                [what, _size(eager), "→", _size(compiled), (_change(eager, compiled), "dim")]
            )
    return (
        [BLANK, heading("memory", "eager → compiled"), *table(rows, "lrlrl", 100, 2)]
        if rows
        else []
    )


def _size(size: int | None) -> Cell:
    return ("not measured", "dim") if size is None else bytes_text(size)


def _change(eager: int | None, compiled: int | None) -> str:
    if eager is None or compiled is None or eager == compiled:
        return ""
    return f"{bytes_text(abs(compiled - eager))} {'more' if compiled > eager else 'less'}"


def precision_lines(profile: Profile, width: int) -> list[Line]:
    """How many kernels were compared, the largest errors, and the first wrong kernel."""
    found = profile.precision
    if not found:
        return []
    compared = [one for one in found if one.within is not None]
    wrong = [one for one in compared if one.within is False]
    words = f"{plural(len(compared), 'kernel')} against float64"
    words += f"; {len(wrong)} wrong" if wrong else ", all within bounds"
    if len(found) > len(compared):
        words += f"; {len(found) - len(compared)} not compared"
    lines = [BLANK, heading("precision", words)]
    ranked = sorted(compared, key=_excess, reverse=True)
    first = wrong[:1]
    rows: list[list[Cell]] = [
        [(word, "dim") for word in ("kernel", "result", "error", "eager's", "bound", "")]
    ]
    for one in dict.fromkeys((*first, *ranked[:4])):
        rows += _precision(profile, one, one in first)
    lines += table(rows, "ffrrrf", width, 2)
    return [*lines, *_not_compared(profile, found)]


def _not_compared(profile: Profile, found: Sequence[KernelPrecision]) -> list[Line]:
    """The kernels that were not compared, by reason."""
    left: dict[str, list[str]] = {}
    for one in found:
        if one.within is None:
            left.setdefault(one.reason, []).append(_name(profile, one))
    lines = []
    for reason, names in list(left.items())[:_REASONS]:
        which = ", ".join(names[:_NAMES])
        which += f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        why = f"{which}: {reason}" if reason else which
        lines.append(line(("  not compared: ", "dim"), (why, "dim"), hang=4))
    if len(left) > _REASONS:
        lines.append(line((f"  … {plural(len(left) - _REASONS, 'reason')} more", "dim")))
    return lines


def _excess(one: KernelPrecision) -> float:
    worst = worst_output(one)
    return excess(worst) if worst is not None else 0.0


def _name(profile: Profile, one: KernelPrecision) -> str:
    kernel = profile.index.recording.kernels.get(one.kernel)
    return f"{one.kernel} {kernel_label(kernel)}" if kernel else one.kernel


def _precision(profile: Profile, one: KernelPrecision, first: bool) -> list[list[Cell]]:
    worst = worst_output(one)
    if worst is None:
        return []
    role: Role = "bad" if one.within is False else "text"
    note = "the first that is wrong" if first else worst.note
    return [
        [
            (_name(profile, one), role),
            worst.node,
            (error_text(worst.error), role),
            (error_text(worst.eager_error), "dim"),
            (error_text(worst.bound), "dim"),
            (note, "bad" if role == "bad" else "dim"),
        ]
    ]


def modes_lines(rows: tuple[ModeRow, ...], width: int) -> list[Line]:
    if not rows:
        return []
    heads = ("mode", "eager", "call", "speed-up", "±", "compile", "peak", "pays after")
    cells: list[list[Cell]] = [[(word, "dim") for word in heads]]
    notes: list[Line] = []
    for row in rows:
        if row.note or row.reason:
            words = f"  {row.reason or row.note}"
            notes.append(line(("·  ", "dim"), row.name, (words, "dim"), hang=3))
        if row.reason:
            cells.append([row.name, ("–", "dim"), ("–", "dim"), ("–", "dim"), "", "", "", ""])
            continue
        quiet = mode_in_noise(row)
        role: Role = "dim" if quiet or row.name == "eager" else "good" if row.speedup > 1 else "bad"
        eager = row.eager if row.name != "eager" else None
        cells.append(
            [
                row.name,
                (seconds_text(eager.median) if eager else "", "dim"),
                seconds_text(row.time.median if row.time else None),
                (ratio_text(row.speedup), role),
                (percent(row.noise), "dim"),
                seconds_text(row.compile_seconds) if row.compile_seconds else ("–", "dim"),
                _size(row.peak_bytes),
                _pays(row, quiet),
            ]
        )
    return [
        BLANK,
        heading("modes", "each in its own process, with eager in the same rounds"),
        *table(cells, "lrrrrrrf", width, 2),
        *notes,
    ]


def _pays(row: ModeRow, quiet: bool) -> Cell:
    if row.name == "eager":
        return ""
    if row.pays_after is not None:
        return f"compiling pays off after {number(row.pays_after)} calls"
    return ("in the noise", "dim") if quiet else ("never", "bad") if row.speedup < 1 else ""


def trials_lines(trials: tuple[Trial, ...], width: int) -> list[Line]:
    if not trials:
        return []
    lines = [BLANK, heading("tried", plural(sum(one.kept for one in trials), "change") + " kept")]
    for one in trials:
        if one.before is None or one.after is None:
            text = one.reason or "not measured"
            lines.append(line(("·  ", "dim"), one.words, (f"  {text}", "dim"), hang=3))
            lines += _diff(one)
            continue
        quiet = abs(one.difference) <= one.noise
        role: Role = "dim" if quiet else "good" if one.difference < 0 else "bad"
        glyph = "✓" if one.kept else "·" if quiet else "✗"
        times = f"  {seconds_text(one.before.median)} → {seconds_text(one.after.median)}  "
        why = "" if one.kept else f"  {one.reason}"
        different = "" if one.equal is not False else "  results differ"
        lines.append(
            line(
                (f"{glyph}  ", role),
                one.words,
                times,
                (change_text(one.difference), role),
                (f" ±{seconds_text(one.noise)}", "dim"),
                (different, "bad"),
                (why, "dim"),
                hang=3,
            )
        )
        lines += _diff(one)
    best = chosen(trials)
    if best is not None:
        lines.append(line(("   use it with: ", "dim"), best.command, hang=3))
        if best.diff:
            said = "your files are unchanged; --patch FILE writes the edits as a patch"
            lines.append(line((f"   {said}", "dim"), hang=3))
    return lines


def _diff(trial: Trial) -> list[Line]:
    """A trial's source edits, as the hunks of a unified diff."""
    lines: list[Line] = []
    for text in trial.diff.splitlines():
        if text.startswith("+++"):
            name = text.removeprefix("+++ b/")
            lines.append(line(("     tried on a copy of ", "dim"), (name, "dim"), hang=5))
        elif text.startswith(("@@", "-", "+")) and not text.startswith("---"):
            role: Role = "dim" if text[0] == "@" else "good" if text[0] == "+" else "bad"
            lines.append(line("     ", (text, role), hang=7))
    return lines
