"""`tcw diff --markdown`: what changed in words, and its cause; figures and code folded."""

from __future__ import annotations

from tcw.viewers.markdown.comment import Comment, code, escaped
from tcw.viewers.markdown.items import effect_items
from tcw.viewers.markdown.report import WIDTH, environment_items
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.difference_words import effect_words
from tcw.viewers.summary.differences.effects import Effect
from tcw.viewers.summary.differences.lines import TextDiff
from tcw.viewers.text.diff import (
    MOST,
    call_lines,
    effect_groups,
    figures_lines,
    same_cut,
    with_code,
)
from tcw.viewers.text.lines import to_text

MARKER = "<!-- tcw diff -->"
_FOLDED = 200
"""Effects listed below the first ones."""
_MARKS = {"bad": "❌", "good": "✅", "neutral": "·"}


def diff_markdown(difference: Difference, before: str, after: str) -> str:
    """`before`, `after`: what the two sides are called."""
    effects = difference.effects
    sides = f"{escaped(before)} → {escaped(after)}"
    times = [f"- {escaped(line.text)}" for line in call_lines(difference)]
    if not effects:
        comment = Comment(MARKER, f"✅ tcw diff: nothing changed: {sides}")
        comment.add([*times, ""], "the times")
    else:
        first = effects[0]
        comment = Comment(MARKER, f"{_MARKS[first.tone]} tcw diff: {escaped(_sentence(first))}")
        because = [f"because {code(first.cause)}\\"] if first.cause else []
        comment.add([*because, sides, ""], "what was compared")
        groups = effect_groups(effects[1:])
        shown = [effect for group in groups for effect in group[:MOST]]
        comment.add([*times, *effect_items(shown, len(shown), first.cause), ""], "the effects")
        more = [effect for group in groups for effect in group[MOST:]]
        if more:
            items = effect_items(more, _FOLDED, first.cause)
            comment.fold(f"{len(more)} more effects", items)
    rows = to_text(figures_lines(difference, WIDTH), WIDTH).strip("\n").splitlines()
    if rows:
        comment.fold_text("figures, decisions, kernels", rows)
    for kernel in difference.changed_kernels:
        if same_cut(difference) and with_code(difference, kernel):
            comment.fold_text(f"code of {kernel.name}", _code(kernel.code), "diff")
    for name, side in ((before, difference.base), (after, difference.run)):
        comment.fold(f"environment of {name}", environment_items(side))
    return comment.text("`tcw diff` of the two shows it.")


def _code(diff: TextDiff) -> list[str]:
    return [
        row
        for hunk in diff.hunks
        for row in (f"@@ {hunk.head} @@", *(f"{line.sign} {line.text}" for line in hunk.lines))
    ]


def _sentence(effect: Effect) -> str:
    return f"{effect.place} {effect_words(effect)}".strip()
