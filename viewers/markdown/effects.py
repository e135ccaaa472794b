"""Effects of `tcw diff` and `tcw check`, an item each."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.viewers.markdown.text import code, escaped
from tcw.viewers.summary.differences.effects import Effect
from tcw.viewers.summary.differences.words import effect_words
from tcw.viewers.words import plural


def effect_items(effects: Sequence[Effect], most: int, told: str = "") -> list[str]:
    """`told`: a cause that was given above."""
    items = []
    for one in effects[:most]:
        place = f"{code(one.place)} " if one.place else ""
        because = f" — because {code(one.cause)}" if one.cause not in ("", told) else ""
        items.append(f"- {place}{escaped(effect_words(one))}{because}")
    if len(effects) > most:
        items.append(f"- {plural(len(effects) - most, 'effect')} more")
    return items
