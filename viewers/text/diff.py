"""The report of `tcw diff`: what changed in words, by cost, and below it the figures."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.difference_words import TONE_GLYPHS, call_words, effect_words
from tcw.viewers.summary.differences.effects import Effect
from tcw.viewers.text.difference import blocks, same_cut
from tcw.viewers.words import plural

MOST = 12
"""Effects listed; the rest are counted."""


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
    if more:
        lines.append(BLANK)
    lines += effect_lines(more, MOST, first.cause)
    return [*lines, *figures_lines(difference, width, code)]


_ROLES: dict[str, Role] = {"faster": "good", "slower": "bad"}


def call_lines(difference: Difference) -> list[TextLine]:
    """Whole calls of both sides, where they were timed in turn."""
    calls = [one for one in difference.measured if one.record.scope == "call"]
    return [line((call_words(one), _ROLES.get(one.outcome, "text")), hang=2) for one in calls]


def effect_lines(effects: Sequence[Effect], most: int, told: str = "") -> list[TextLine]:
    """An effect a line, its cause below; `told`: a cause that was given above."""
    lines = []
    for one in effects[:most]:
        where = f"{one.place}  " if one.place else ""
        glyph = (f"{TONE_GLYPHS[one.tone]} ", TONES[one.tone])
        lines.append(line(glyph, (where, "dim"), effect_words(one), hang=2))
        if one.cause and one.cause != told:
            lines.append(line(("    because  ", "dim"), (one.cause, "dim"), hang=13))
    if len(effects) > most:
        lines.append(line((f"  {plural(len(effects) - most, 'effect')} more", "dim")))
    return lines


def _sentence(effect: Effect) -> str:
    words = effect_words(effect)
    return f"{effect.place}  {words}" if effect.place else words[:1].upper() + words[1:]


def figures_lines(difference: Difference, width: int, code: bool = False) -> list[TextLine]:
    """Below the effects: figures, and what differs, kind by kind."""
    found = blocks(difference, width, code, graphs=same_cut(difference))
    return [one for block in found for one in (BLANK, *block)]
