"""The reader's overrides, and the outcome of each in the run on screen."""

from __future__ import annotations

from tcw.compiler.trace.records import End, Waiting
from tcw.viewers.kit.cells import keep_end, pad
from tcw.viewers.kit.spans import Role, text
from tcw.viewers.panes.rows import Content, Row, empty
from tcw.viewers.panes.targets import ToOverride
from tcw.viewers.panes.view import View
from tcw.viewers.words import plural


def content(view: View, width: int) -> Content:
    """One row each: id, choice, whether the run followed it."""
    if not view.overrides:
        rows = empty(
            width, "nothing is overridden", "v or f at a decision overrides it; d goes to the next"
        )
        return Content("overrides", rows=rows)
    column = min(max(len(id) for id in view.overrides), max(12, width - 34))
    rows = [_row(view, id, choice, column, width) for id, choice in view.overrides.items()]
    kept = sum(view.kept.get(id) == choice for id, choice in view.overrides.items())
    right = ((f"{kept} kept", "dim"),) if kept else ()
    return Content("overrides", plural(len(rows), "override"), right, rows)  # type: ignore[arg-type]


def _row(view: View, id: str, choice: str, column: int, width: int) -> Row:
    glyph, words, role = state_of(view, id, choice)
    kept = "kept" if view.kept.get(id) == choice else ""
    return Row(
        body=(
            (f" {glyph} ", role),
            text(pad(keep_end(id, column), column), "text"),
            text(f"  {choice}", "strong"),
            text(f"  {words}", role if role != "good" else "dim"),
        ),
        right=((kept + " ", "dim"),),
        at=ToOverride(id),
        copies=f'"{id}" = "{choice}"',
    )


def state_of(view: View, id: str, choice: str) -> tuple[str, str, Role]:
    """Glyph, words and role: met, refused, unknown, or for the next run only."""
    recording = view.recording
    settings = recording.run_settings
    given = settings.overrides if settings else {}
    last = recording.decisions.decided.get(id)
    if last is not None and last.refused:
        return "✗", f"refused: {last.refused}", "bad"
    if last is not None and last.choice == choice:
        return "✓", "met", "good"
    if last is not None or (id not in given and id in recording.decisions.asked):
        return "·", "decided otherwise in this run: w compiles again", "dim"
    if id not in given:
        return "·", "from the next run on: w compiles again", "dim"
    over = recording.end is not None or recording.last(End) is not None
    waiting = recording.last(Waiting)
    if over or (waiting is not None and waiting.kind == "end"):
        return "?", "unknown: no decision of this run has this name", "warn"
    return "·", "not reached yet", "dim"
