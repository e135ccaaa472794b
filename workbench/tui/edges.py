"""What the lines at the edges of the screen say: header, bar, timeline, footer."""

from __future__ import annotations

from rich.cells import cell_len

from tcw.compiler.control.decisions import APART, FUSE, split_id
from tcw.viewers.kit.spans import Span, width_of
from tcw.viewers.panes import timeline
from tcw.viewers.panes.arrangement import PROFILES
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import View
from tcw.workbench.tui.commands import Commands
from tcw.workbench.tui.edge import Lines
from tcw.workbench.tui.hints import CHOOSE, DECIDE, HINTS, OVER, PAST, RUNNING, STAND, STEP, Hint

KEYS = {"-": "minus", "?": "question_mark", "←": "left", "↓": "down", "↑": "up", "→": "right"}
"""Key as shown -> Textual's name, where they differ."""
BADGES = {"✗": "break", "↻": "recompiles"}
"""Glyph of a count in the header -> its arrangement."""


def barred(rows: list[Row]) -> Lines:
    """The lines of a bar."""
    return [
        (
            Row(gutter=((" ", "text"),), body=row.body, right=row.right),
            "title" if row.heading else "",
        )
        for row in rows
    ]


def timeline_lines(view: View, arrangement: str, width: int) -> Lines:
    if width < 100 or view.presenting:
        return []
    above, below, right = timeline.timeline(view, width, arrangement)
    return [(Row(body=above), ""), (Row(body=below, right=right), "")]


def footer(note: str, hints: tuple[Hint, ...], commands: Commands, width: int) -> Lines:
    """The last message, else as many keys as fit."""
    ending: tuple[Span, ...] = (
        (commands.keys("help") + " ", "key"),
        ("help  ", "dim"),
        (commands.keys("palette") + " ", "key"),
        ("all commands ", "dim"),
    )
    if note:
        return [(Row(body=((" ", "text"), (note, "accent")), right=ending), "title")]
    spans: list[Span] = [(" ", "text")]
    used = 1 + sum(len(words) for words, _ in ending)
    for names, words in hints:
        key = commands.keys(names)
        size = len(key) + len(words) + 3
        if used + size > width:
            break
        used += size
        spans += [(key + " ", "key"), (words + "  ", "dim")]
    return [(Row(body=tuple(spans), right=ending), "title")]


def clicked(row: Row, commands: Commands, width: int, x: int) -> str:
    """Textual's name of the key in column `x` of a footer or bar; "" for none. The words after
    several keys stand for the first."""
    for start, spans in (
        (width_of(row.gutter), row.body),
        (width - width_of(row.right), row.right),
    ):
        at, keys = start, [""]
        for words, role in spans:
            end = at + cell_len(words)
            if role == "key":
                keys = words.split()
            elif role in ("turn", "button", "off"):
                keys = words.split()[:1]
            if at <= x < end:
                place = words[: x - at].count(" ") if role == "key" else 0
                return _key(keys[min(place, len(keys) - 1)], commands) if words.strip() else ""
            at = end
    return ""


def _key(shown: str, commands: Commands) -> str:
    """Textual's name of a key that is written `shown`."""
    named = (one.keys[0] for one in commands.all if one.shown == shown and one.keys)
    return next(named, KEYS.get(shown, shown))


def badge(row: Row, x: int) -> str:
    """The arrangement to open for a click on column `x` of the header: that of the count of breaks
    or recompiles there, else the overview."""
    at, about = 0, "overview"
    for words, _ in row.body:
        word = words.strip()
        counted = word[:1] in BADGES and word[1:].isdecimal()
        about = BADGES[word[0]] if counted else about if word.isalpha() else "overview"
        at += cell_len(words)
        if x < at:
            break
    return about


def _possible(view: View, hints: tuple[Hint, ...]) -> tuple[Hint, ...]:
    """Drop the keys for overrides if there is nothing to keep, undo or write."""
    missing = set() if view.overrides else {"undo", "write"}
    if view.overrides == view.kept:
        missing.add("keep")
    return tuple(hint for hint in hints if hint[0] not in missing)


def _answers(view: View) -> tuple[Hint, ...]:
    """The keys of an open decision, without the engine's own choice and those that a rule
    forbids."""
    asked = view.asked
    if asked is None or asked.kind != FUSE:
        return DECIDE
    idle = {asked.default, *(one.choice for one in asked.forbidden)}
    missing = {key for key, choice in (("veto", APART), ("force", FUSE)) if choice in idle}
    return tuple(hint for hint in DECIDE if hint[0] not in missing)


def hints(view: View, arrangement: str) -> tuple[Hint, ...]:
    """The keys that matter now, most useful first."""
    if view.playhead:
        return _answers(view) if view.asked is not None else PAST
    if not view.driven or arrangement in ("breakpoints", "overrides"):
        return _possible(view, HINTS[arrangement])
    waiting = view.waiting
    if waiting is None:
        return RUNNING
    if waiting.decision:
        return _answers(view) if split_id(waiting.decision)[1] == FUSE else CHOOSE
    if waiting.kind == "end":
        profile = arrangement in PROFILES and view.derived.profile is not None
        return HINTS[arrangement] if profile else _possible(view, OVER)
    return STEP if waiting.kind == "step" or waiting.stage == "capture" else STAND
