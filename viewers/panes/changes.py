"""Two runs of one model: what changed, and the code that changed, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tcw.viewers.kit.highlight import Language, highlight
from tcw.viewers.kit.spans import Line, Role
from tcw.viewers.labels import CALLED
from tcw.viewers.panes.kernel import tidy, without_decorators
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, prose_rows, text_row, text_rows
from tcw.viewers.panes.targets import ToLineup
from tcw.viewers.panes.view import LANGUAGES, View
from tcw.viewers.panes.what_if import difference_of, nothing
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.difference_words import kernel_words, kind_words
from tcw.viewers.summary.differences.kernel_changes import KernelChange
from tcw.viewers.summary.differences.lines import Sign, TextDiff, diff_lines
from tcw.viewers.text.diff import blocks
from tcw.viewers.words import plural

KERNELS = 30
"""Listed; the rest are counted."""


def shown_change(view: View, difference: Difference) -> KernelChange | None:
    """The changed kernels shown."""
    changes = difference.changed_kernels
    return changes[min(view.lined, len(changes) - 1)] if changes else None


def diff(view: View, width: int) -> Content:
    """The code of one changed kernel, before and after."""
    difference = difference_of(view)
    if difference is None:
        return nothing("code", width)
    change = shown_change(view, difference)
    if change is None:
        count = len(difference.kernels)
        same = f"{plural(count, 'kernel')}, and all are as before" if count else "no kernels yet"
        return Content("code", rows=empty(width, same))
    kernels = change.after or change.before
    owner = view.derived if change.after or view.base is None else view.base
    name = ", ".join(kernel.id for kernel in kernels)
    if not change.generated:
        why = f"{CALLED[change.language]}: no code is generated"
        rows = empty(width, kernel_words(change), why)
        return Content(name, owner.called.name(kernels[0]), rows=rows)
    before, after = _shown(view, change)
    text_diff = diff_lines(before, after)
    language: Language = "cpp" if change.language == "cpp" else "python"
    written = LANGUAGES[change.language]  # type: ignore[index]
    subject = f"{owner.called.name(kernels[0])}  {written}  {_sides(difference)}"
    right = f"+{text_diff.added} −{text_diff.removed} lines"
    if not view.raw:
        right += " · tidied"
    coloured = [highlight("\n".join(side), language) for side in (before, after)]
    rows = _diff_rows(text_diff, *coloured)
    if not rows:
        raw = "" if view.in_page else "R shows it as generated"
        rows = empty(width, "the same but for names and comments", raw)
    return Content(name, subject, ((right, "dim"),), rows)


def _sides(difference: Difference) -> str:
    subject = difference.verdict.subject
    return f"base → {subject if subject in ('veto', 'override', 'overrides') else 'run'}"


def _shown(view: View, change: KernelChange) -> tuple[list[str], list[str]]:
    if view.raw:
        return change.texts
    return tuple(_tidied("\n".join(side), change.language) for side in change.texts)  # type: ignore[return-value]


@lru_cache(maxsize=16)
def _tidied(body: str, language: str) -> list[str]:
    shorten = tidy if language == "cpp" else without_decorators
    return [words for _, words in shorten(body)] if body else []


_SIGNS: dict[Sign, tuple[str, Role]] = {"+": ("+ ", "good"), "-": ("- ", "bad"), " ": ("  ", "dim")}


def _diff_rows(found: TextDiff, before: Sequence[Line], after: Sequence[Line]) -> list[Row]:
    rows: list[Row] = []
    for hunk in found.hunks:
        rows.append(text_row((f" ┄┄┄┄┄┄ {hunk.head}", "faint"), key=f"hunk:{len(rows)}"))
        for diff_line in hunk.lines:
            line = (
                before[diff_line.before - 1]
                if diff_line.sign == "-"
                else after[diff_line.after - 1]
            )
            rows.append(
                Row(
                    gutter=((" ", "text"), _SIGNS[diff_line.sign]),
                    body=line,
                    tint={"+": "added", "-": "removed", " ": ""}[diff_line.sign],  # type: ignore[arg-type]
                    copies=diff_line.text,
                )
            )
    return rows


def changed(view: View, width: int) -> Content:
    """Changed figures, decisions and kernels, and whether the veto holds."""
    difference = difference_of(view)
    if difference is None:
        return nothing("what changed", width)
    rows: list[Row] = []
    for lines in blocks(difference, width - 2, code=False, whole=False):
        rows += [*text_rows(lines, width, indent=1), BLANK]
    for figure in difference.figures:
        if figure.not_compared:
            rows += prose_rows(f"{figure.what} not compared: {figure.not_compared}", width)
    rows += _kernels(difference)
    if difference.nothing:
        rows += empty(width, difference.verdict.why)
    start = str(ToLineup(view.lined))
    return Content("what changed", rows=rows, start=start, tracks=True, still=True)


def _kernels(difference: Difference) -> list[Row]:
    """The changed kernels, to choose one; the others are counted."""
    changes = difference.changed_kernels
    same = len(difference.kernels) - len(changes)
    if not changes:
        return []
    rows = [text_row((" kernels", "accent"))]
    for index, change in enumerate(changes[:KERNELS]):
        rows.append(
            text_row(
                (" ▸ ", "faint"),
                change.name,
                (f"  {kind_words(change)}", "dim"),
                at=ToLineup(index),
            )
        )
    if len(changes) > KERNELS:
        rows.append(text_row((f"   {len(changes) - KERNELS:,} more", "faint")))
    if same:
        rows.append(text_row((f"   {plural(same, 'other')} as before", "dim")))
    return rows
