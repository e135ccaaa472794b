"""One comment for a pull request: summary first, details folded."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.viewers.check.result import OUTCOME_WORDS, TargetResult, accepting
from tcw.viewers.check.text import MOST, headline
from tcw.viewers.markdown.comment import Comment, cell_code, code, escaped
from tcw.viewers.markdown.items import effect_items

MARKER = "<!-- tcw check -->"


def markdown(results: Sequence[TargetResult]) -> str:
    failing = any(result.fails for result in results)
    mark = "❌" if failing else "✅"
    comment = Comment(MARKER, f"{mark} tcw check: {escaped(headline(results))}")
    listed = [result for result in results if result.fails or result.changes]
    if listed:
        head = ("target", "", "first", "because")
        comment.table(head, [_row(result) for result in listed], "rows of this table")
    for result in listed:
        details = _details(result)
        if details:
            comment.fold(f"{result.name}: {OUTCOME_WORDS[result.outcome]}", details)
    return comment.text("The job's log has it.")


def _row(result: TargetResult) -> tuple[str, ...]:
    return (
        f"**{escaped(result.name)}**",
        OUTCOME_WORDS[result.outcome],
        escaped(result.first_words),
        cell_code(result.cause),
    )


def _details(result: TargetResult) -> list[str]:
    lines = effect_items(result.effects, MOST, result.cause)
    if result.effects and result.changes:
        lines += ["", "Against the budget:", ""]
    for change in result.changes:
        note = {"better": " (better)", "different": "", "worse": " (worse)"}[change.standing]
        advice = ", advice only" if change.tolerance.advice else ""
        lines.append(f"- {escaped(change.words)}{note}{advice}")
    if lines and result.outcome in ("better", "different", "worse", "new"):
        lines += ["", f"If intended: {code(accepting(result))}"]
    return lines
