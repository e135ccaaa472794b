"""What tcw tried by itself, with the outcomes."""

from __future__ import annotations

import shlex

from tcw.compiler.trace.records import Trial
from tcw.viewers.kit.figures import change_text
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Line, Role, Span, text
from tcw.viewers.words import NOT_MEASURED, seconds_text


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
    found: list[Span] = [
        (f"{seconds_text(trial.before.median)} → {seconds_text(trial.after.median)}  ", "text"),
        (change_text(trial.difference), outcome_role(trial)),
        (f" ±{seconds_text(trial.noise)}", "dim"),
    ]
    if trial.equal is False:
        found.append(("  results differ", "bad"))
    if not trial.kept and trial.reason:
        found.append(text(f"  {trial.reason}", "dim"))
    return tuple(found)


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
