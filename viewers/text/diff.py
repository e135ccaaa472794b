"""The report of `tcw diff`: what changed in words, by cost; then figures, by kind, and code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tcw.viewers.collected import grouped
from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.decision_changes import Veto
from tcw.viewers.summary.differences.difference_words import (
    TONE_GLYPHS,
    call_words,
    change_text,
    change_words,
    effect_words,
    kernel_words,
    others_words,
    veto_words,
)
from tcw.viewers.summary.differences.effects import OTHER_GRAPHS, Effect
from tcw.viewers.summary.differences.figures import Figure
from tcw.viewers.summary.differences.kernel_changes import KernelChange
from tcw.viewers.summary.differences.lines import TextDiff
from tcw.viewers.words import listed, plural

MOST = 12
"""Effects listed of a group; the rest are counted."""


def diff_lines(
    difference: Difference, before: str, after: str, width: int, code: bool = False
) -> list[TextLine]:
    """`before`, `after`: what the two sides are called."""
    effects = difference.effects
    times = call_lines(difference)
    head = f"{before} → {after}"
    if not effects:
        title = line(("Nothing changed", "strong"), f": {head}", hang=2)
        return [title, *times, *figures_lines(difference, width, code)]
    first, *more = effects
    lines = [line((_sentence(first), TONES[first.tone]), hang=2)]
    if first.cause:
        lines.append(line(("because  ", "dim"), first.cause, hang=9))
    lines.append(line((head, "dim"), hang=2))
    lines += times
    for group in effect_groups(more):
        lines += [BLANK, *effect_lines(group, MOST, first.cause)]
    return [*lines, *figures_lines(difference, width, code)]


def effect_groups(effects: Sequence[Effect]) -> list[list[Effect]]:
    """Failures, what changed in the model, and what torch makes of it."""
    return [list(group) for _, group in groupby(effects, lambda one: one.kind == "operation")]


_ROLES: dict[str, Role] = {"faster": "good", "slower": "bad"}


def call_lines(difference: Difference) -> list[TextLine]:
    """Whole calls of both sides, where they were timed in turn."""
    calls = [
        measured_difference
        for measured_difference in difference.measured
        if measured_difference.record.scope == "call"
    ]
    return [line((call_words(call), _ROLES.get(call.outcome, "text")), hang=2) for call in calls]


def effect_lines(effects: Sequence[Effect], most: int, told: str = "") -> list[TextLine]:
    """An effect a line, its cause below; `told`: a cause that was given above."""
    lines = []
    for effect in effects[:most]:
        where = f"{effect.place}  " if effect.place else ""
        glyph = (f"{TONE_GLYPHS[effect.tone]} ", TONES[effect.tone])
        lines.append(line(glyph, (where, "dim"), effect_words(effect), hang=2))
        if effect.cause and effect.cause != told:
            lines.append(line(("    because  ", "dim"), (effect.cause, "dim"), hang=13))
    if len(effects) > most:
        lines.append(line((f"  {plural(len(effects) - most, 'effect')} more", "dim")))
    return lines


def _sentence(effect: Effect) -> str:
    words = effect_words(effect)
    return f"{effect.place}  {words}" if effect.place else words[:1].upper() + words[1:]


def figures_lines(difference: Difference, width: int, code: bool = False) -> list[TextLine]:
    """Below the effects: figures, and what differs, kind by kind."""
    found = blocks(difference, width, code, graphs=same_cut(difference))
    return [text_line for block in found for text_line in (BLANK, *block)]


SUBJECT = 16
"""Cells of a decision's subject before its reason goes."""
DECISIONS = 12
"""Maximum number of decisions listed; the rest are counted."""
KERNELS = 12
"""Maximum number of lines of kernels; with `--code`, all of them."""
ROWS = 8
"""Most breaks, guards, … listed of each kind; the rest are counted."""


def blocks(
    difference: Difference, width: int, code: bool, graphs: bool = True, whole: bool = True
) -> list[list[TextLine]]:
    """What changed, by kind; kinds without a change are left out. Without `graphs`, not what only
    graphs of the same cut have in common: guards, decisions and kernels. Not `whole`: without
    kernels, and without overrides among the settings, for they are decisions."""
    found = [
        _settings(difference, whole),
        _figures(difference, width),
        _counted("graph breaks", difference.breaks, width),
        _counted("recompiles", difference.recompiles, width),
    ]
    if graphs:
        found += [
            _counted("guards", difference.guards, width),
            _decisions(difference, width),
            _kernels(difference, code) if whole else [],
            [_veto(veto) for veto in difference.vetoes],
        ]
    return [block for block in found if block]


def same_cut(difference: Difference) -> bool:
    """Whether graphs are cut alike, so that their kernels can be compared one by one."""
    return not any(effect.kind in OTHER_GRAPHS for effect in difference.effects)


def with_code(difference: Difference, change: KernelChange) -> bool:
    """Whether the code of both sides can be compared line by line."""
    return len(set(difference.engines)) == 1 and change.generated


def _settings(difference: Difference, whole: bool) -> list[TextLine]:
    return [
        line(
            (f"{setting.name}  ", "dim"),
            f"{setting.before or 'default'} → {setting.after or 'default'}",
        )
        for setting in difference.settings
        if setting.name != "file" and (whole or setting.name.count("/") <= 2)
    ]


def _figures(difference: Difference, width: int) -> list[TextLine]:
    changed = [figure for figure in difference.figures if figure.changed]
    rows: list[Sequence[Cell]] = [[(figure.what, "dim"), change_text(figure)] for figure in changed]
    nests: list[Sequence[Cell]] = []
    for change in difference.changed_kernels:
        before, after = change.nests
        if before is not None and after is not None and before != after:
            nests.append([(f"loop nests, {change.name}", "dim"), f"{before} → {after}"])
    if not rows and not nests:
        return []
    lines = table([*rows, *nests[:ROWS]], "lf", width, indent=2)
    return [heading("what changed"), *lines, *_more(len(nests) - ROWS)]


def _counted(what: str, changes: Sequence[Figure], width: int) -> list[TextLine]:
    if not changes:
        return []
    rows: list[Sequence[Cell]] = [
        [_sign(change), f"{change.before} → {change.after}", change.what]
        for change in changes[:ROWS]
    ]
    lines = [heading(what), *table(rows, "lrf", width, indent=2)]
    return [*lines, *_more(len(changes) - ROWS)]


def _sign(change: Figure) -> str:
    return "+" if not change.before else "-" if not change.after else "~"


def _more(count: int) -> list[TextLine]:
    return [line(("  " + f"{count:,} more", "dim"))] if count > 0 else []


def _decisions(difference: Difference, width: int) -> list[TextLine]:
    changes = difference.decisions
    if not changes.changes:
        return []
    rows: list[Sequence[Cell]] = []
    for change in changes.changes[:DECISIONS]:
        glyph, words = change_words(change)
        reason = change.reason if change.change in ("refused", "other", "gone") else ""
        rows.append([glyph, (change.kind, "dim"), change.subject, words, (reason, "dim")])
    lines = [heading("decisions that changed"), *table(rows, "llflf", width, 2, (4,), SUBJECT)]
    lines += _more(len(changes.changes) - DECISIONS)
    return [*lines, line((f"  {others_words(changes)}", "dim"))]


def _kernels(difference: Difference, code: bool) -> list[TextLine]:
    changed = difference.changed_kernels
    same = len(difference.kernels) - len(changed)
    if not changed:
        return [line((f"{plural(same, 'kernel')}, all as before", "dim"))] if same else []
    lines = [heading("kernels", f"{same} as before" if same else "")]
    across = len(set(difference.engines)) > 1
    alike = grouped(
        ((change.label, change.kind if across else kernel_words(change)), change)
        for change in changed
    )
    for (label, words), group in list(alike.items())[: None if code else KERNELS]:
        for some in [[change] for change in group] if code else [group]:
            ids = listed([each.id for change in some for each in change.after or change.before])
            times = f" ×{len(some)}" if len(some) > 1 else ""
            lines.append(line("  ", (f"{ids} {label}{times}", "strong"), f"  {words}", hang=4))
            if code and with_code(difference, some[0]):
                lines += _diff(some[0].code)
    return lines if code else [*lines, *_more(len(alike) - KERNELS)]


def _diff(diff: TextDiff) -> list[TextLine]:
    lines: list[TextLine] = []
    roles: dict[str, Role] = {"+": "good", "-": "bad", " ": "text"}
    for hunk in diff.hunks:
        lines.append(line((f"    {hunk.head}", "dim"), fixed=True))
        for diff_line in hunk.lines:
            lines.append(
                line(f"  {diff_line.sign} ", (diff_line.text, roles[diff_line.sign]), fixed=True)
            )
    return lines


def _veto(veto: Veto) -> TextLine:
    glyph, role = {True: ("✓", "good"), False: ("✗", "bad"), None: ("?", "dim")}[veto.holds]
    title, evidence = veto_words(veto)
    words = f"{title} of {veto.first} and {veto.second}" if veto.holds else title
    return line((f"{glyph} {words}", role), f"   {evidence}" if evidence else "", hang=2)  # type: ignore[arg-type]
