"""`tcw check` for the terminal: what fails first, each target with its changes and their cause."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tcw.viewers.check.result import OUTCOME_WORDS, Outcome, TargetResult, accepting, counts
from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.words import plural, seconds_text

MOST = 12
"""Changes listed of one target; the rest are counted."""
_MARKS: dict[Outcome, str] = {
    "ok": "✓", "better": "✓", "new": "✗", "worse": "✗", "different": "✗", "failed": "✗",
    "interrupted": "·",
}  # fmt: skip
_STANDING_MARKS = {"worse": "✗", "different": "·", "better": "✓"}
_STANDING_TONES = {"worse": "bad", "different": "neutral", "better": "good"}


def check_lines(results: Sequence[TargetResult]) -> list[TextLine]:
    failing = [result for result in results if result.fails]
    rest = [result for result in results if not result.fails]
    lines = [line((headline(results), TONES["bad" if failing else "good"]), hang=2)]
    for result in failing:
        lines += [BLANK, *_target(result)]
    if rest:
        lines.append(BLANK)
    for target_result in rest:
        lines += _target(target_result)
    return lines


def check_text(results: Sequence[TargetResult]) -> str:
    """The lines without styles, for a file."""
    return "\n".join(check_line.text for check_line in check_lines(results)) + "\n"


def headline(results: Sequence[TargetResult]) -> str:
    """`1 of 3 targets: worse than accepted 1, as accepted 2`, in words."""
    if not results:
        return "no target to check"
    total = plural(len(results), "target")
    found = counts(results)
    if len(found) == 1:
        return f"{total}: {OUTCOME_WORDS[found[0][0]]}"
    return f"{total}: " + ", ".join(f"{count} {OUTCOME_WORDS[one]}" for one, count in found)


def _target(result: TargetResult) -> list[TextLine]:
    bad = result.fails
    head = [
        (f"{_MARKS[result.outcome]} ", TONES["bad" if bad else "good"]),
        (result.name, "strong"),
        (f"  {OUTCOME_WORDS[result.outcome]}", TONES["bad" if bad else "good"]),
    ]
    details = [plural(result.facts, "fact")] if result.facts else []
    details += [seconds_text(result.seconds)] if result.seconds else []
    lines = [line(*head, ("  " + ", ".join(details) if details else "", "dim"), hang=2)]
    if result.accepted_under:
        words = f"accepted under torch {result.accepted_under}, this is {result.torch}"
        lines.append(line((f"  {words}", "dim"), hang=2))
    if result.failure:
        at = result.failed_at
        place = f"{os.path.basename(at.file)}:{at.line}  " if at is not None else ""
        lines.append(line("  ", (place, "accent"), result.failure, hang=4))
    if result.effects:
        lines.append(line(f"  {result.first_words}", hang=4))
    if result.cause:
        lines.append(line(("  because  ", "dim"), result.cause, hang=11))
    for change in result.changes[:MOST]:
        mark = _STANDING_MARKS[change.standing]
        tone = TONES[_STANDING_TONES[change.standing]]
        advice = " (advice)" if change.tolerance.advice else ""
        lines.append(line((f"    {mark} ", tone), change.words, (advice, "dim"), hang=6))
    if len(result.changes) > MOST:
        lines.append(line((f"    {plural(len(result.changes) - MOST, 'change')} more", "dim")))
    if result.no_cause:
        lines.append(line((f"  cause not found: {result.no_cause}", "dim"), hang=4))
    if result.outcome in ("better", "different", "new"):
        lines.append(line(("  if intended: ", "dim"), accepting(result), hang=4))
    return lines
