"""Two runs of one model: what changed, and the code that changed, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tcw.viewers.kit.cells import cut, pad, wrap
from tcw.viewers.kit.highlight import Language, highlight
from tcw.viewers.kit.spans import Line, Role, Span, text
from tcw.viewers.labels import CALLED
from tcw.viewers.panes.kernel import tidy, without_decorators
from tcw.viewers.panes.rows import BLANK, Content, Row, empty
from tcw.viewers.panes.targets import ToLineup
from tcw.viewers.panes.view import LANGUAGES, View
from tcw.viewers.panes.what_if import difference_of, nothing
from tcw.viewers.plain import plain
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.decision_changes import DecisionChange, Veto
from tcw.viewers.summary.differences.difference_words import (
    change_text,
    change_words,
    kernel_words,
    kind_words,
    others_words,
    veto_words,
)
from tcw.viewers.summary.differences.figures import Figure
from tcw.viewers.summary.differences.kernel_changes import KernelChange
from tcw.viewers.summary.differences.lines import Sign, TextDiff, diff_lines
from tcw.viewers.words import plural

NAME = 18
"""Cells of a figure's name."""
DECISIONS = 8
COUNTS = 3
KERNELS = 30
"""Listed of each kind; the rest are counted."""


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
    found = diff_lines(before, after)
    language: Language = "cpp" if change.language == "cpp" else "python"
    written = LANGUAGES[change.language]  # type: ignore[index]
    subject = f"{owner.called.name(kernels[0])}  {written}  {_sides(difference)}"
    right = f"+{found.added} −{found.removed} lines"
    if not view.raw:
        right += " · tidied"
    coloured = [highlight("\n".join(side), language) for side in (before, after)]
    rows = _diff_rows(found, *coloured)
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
        rows.append(Row(body=((f" ┄┄┄┄┄┄ {hunk.head}", "faint"),), key=f"hunk:{len(rows)}"))
        for one in hunk.lines:
            line = before[one.before - 1] if one.sign == "-" else after[one.after - 1]
            rows.append(
                Row(
                    gutter=((" ", "text"), _SIGNS[one.sign]),
                    body=line,
                    tint={"+": "added", "-": "removed", " ": ""}[one.sign],  # type: ignore[arg-type]
                    copies=one.text,
                )
            )
    return rows


def changed(view: View, width: int) -> Content:
    """Changed figures, decisions and kernels, and whether the veto holds."""
    difference = difference_of(view)
    if difference is None:
        return nothing("what changed", width)
    rows = [*_settings(difference), *_figures(difference)]
    if rows:
        rows.append(BLANK)
    for what, changes in (
        ("graph breaks", difference.breaks),
        ("recompiles", difference.recompiles),
        ("guards", difference.guards),
    ):
        rows += _counts(what, changes)
    rows += _decisions(difference, width)
    rows += _vetoes(difference.vetoes, width)
    rows += _kernels(difference)
    if difference.nothing:
        rows += empty(width, difference.verdict.why)
    start = str(ToLineup(view.lined))
    return Content("what changed", rows=rows, start=start, tracks=True, still=True)


def _settings(difference: Difference) -> list[Row]:
    """All settings but the overrides, which are decisions."""
    return [
        Row(
            body=(
                text(f" {pad(one.name, NAME)}", "dim"),
                text(f"{one.before} → {one.after}", "strong"),
            )
        )
        for one in difference.settings
        if one.name.count("/") <= 2
    ]


def _figures(difference: Difference) -> list[Row]:
    rows: list[Row] = []
    for one in difference.figures:
        if one.changed or (one.what == "kernels" and one.before is not None):
            role: Role = "text" if one.not_compared or not one.changed else "strong"
            words = "not compared" if one.not_compared else change_text(one)
            rows.append(_figure(one.what, words, role))
            if one.not_compared:
                rows.append(_figure("", one.not_compared, "dim"))
    for change in difference.changed_kernels:
        before, after = change.nests
        if before is not None and after is not None and before != after:
            ids = ", ".join(kernel.id for kernel in change.after or change.before)
            rows.append(_figure(f"loop nests, {ids}", f"{before} → {after}", "strong"))
    return rows


def _figure(what: str, words: str, role: Role) -> Row:
    return Row(body=(text(f" {pad(cut(plain(what), NAME), NAME)} ", "dim"), (words, role)))


def _counts(what: str, changes: Sequence[Figure]) -> list[Row]:
    if not changes:
        return []
    rows = [Row(body=((f" {what} that changed", "strong"),))]
    for one in changes[:COUNTS]:
        rows.append(
            Row(body=((f"   {one.before} → {one.after}  ", "text"), text(str(one.what), "dim")))
        )
    if len(changes) > COUNTS:
        rows.append(Row(body=((f"   {len(changes) - COUNTS:,} more", "faint"),)))
    return [*rows, BLANK]


_ROLES: dict[str, Role] = {"✗": "bad", "+": "good", "!": "warn", "*": "accent"}


def _decisions(difference: Difference, width: int) -> list[Row]:
    found = difference.decisions
    if not found.changes and not found.as_before:
        return []
    rows = [Row(body=((" decisions that changed", "strong"),))]
    rows += [_decision(one, width) for one in found.changes[:DECISIONS]]
    if len(found.changes) > DECISIONS:
        rows.append(Row(body=((f"   {len(found.changes) - DECISIONS:,} more", "faint"),)))
    words = others_words(found) if found.changes else "none"
    rows += [Row(body=((f"   {line}", "dim"),)) for line in wrap(words, width - 4)]
    return [*rows, BLANK]


def _decision(change: DecisionChange, width: int) -> Row:
    glyph, words = change_words(change)
    words = cut(plain(words), max(10, width // 2))
    kind = "" if change.kind == "fuse" else f"{change.kind} "
    room = max(10, width - len(words) - len(kind) - 6)
    spans: list[Span] = [
        (f" {glyph} ", _ROLES.get(glyph, "dim")),
        text(kind, "dim"),
        (cut(plain(change.subject), room), "text"),
        (f"  {words}", "dim"),
    ]
    return Row(body=tuple(spans), copies=change.id)


def _vetoes(vetoes: Sequence[Veto], width: int) -> list[Row]:
    rows: list[Row] = []
    glyphs: dict[bool | None, tuple[str, Role]] = {
        True: (" ✓ ", "good"),
        False: (" ✗ ", "bad"),
        None: (" ? ", "dim"),
    }
    for veto in vetoes:
        title, evidence = veto_words(veto)
        rows.append(Row(body=(glyphs[veto.holds], (title, "text")), copies=veto.id))
        rows += [Row(body=((f"   {line}", "dim"),)) for line in wrap(evidence, width - 4) if line]
    return [*rows, BLANK] if rows else []


def _kernels(difference: Difference) -> list[Row]:
    """The changed kernels, to choose one; the others are counted."""
    changes = difference.changed_kernels
    same = len(difference.kernels) - len(changes)
    if not changes:
        return []
    rows = [Row(body=((" kernels that changed", "strong"),))]
    for index, one in enumerate(changes[:KERNELS]):
        rows.append(
            Row(
                body=((" ▸ ", "faint"), text(one.name), text(f"  {kind_words(one)}", "dim")),
                at=ToLineup(index),
            )
        )
    if len(changes) > KERNELS:
        rows.append(Row(body=((f"   {len(changes) - KERNELS:,} more", "faint"),)))
    if same:
        rows.append(Row(body=((f"   {plural(same, 'other')} as before", "dim"),)))
    return rows
