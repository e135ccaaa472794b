"""The decisions of a compile, of any kind, in the order of making; the open one last."""

from __future__ import annotations

from compiler.trace import refs
from compiler.trace.records import Asked, Decided
from viewers.kit.cells import keep_end, pad
from viewers.kit.spans import Role, Span, text
from viewers.panes.rows import Content, Row, empty
from viewers.panes.targets import ToDecision
from viewers.panes.view import View
from viewers.summary import rule_words
from viewers.words import plural

WIDE = 70
"""From this width on the rule is shown."""


def content(view: View, width: int) -> Content:
    """A row each: kind, names, choice, and the rule where there is room."""
    prefix = view.compile_id + "/"
    found = [one for one in view.recording.all(Decided) if one.graph.startswith(prefix)]
    last = {one.id: one for one in found}
    asked = view.asked
    rows = [_row(one, width) for id, one in last.items() if asked is None or id != asked.id]
    if asked is not None:
        rows.append(_open(asked, width))
    if not rows:
        name = view.compile_id or "this recording"
        why = f"no decision of {name} was recorded"
        return Content("decisions", rows=empty(width, why, view.not_reached("fusion")))
    overruled = sum(one.overridden for one in last.values())
    taken = len(last) - (asked is not None and asked.id in last)
    said = [plural(taken, "decision")] if taken else []
    said += [f"{overruled} overruled"] if overruled else []
    said += ["1 open"] if asked is not None else []
    words = " · ".join(said)
    start = str(ToDecision(asked.id)) if asked is not None else ""
    return Content("decisions", view.compile_id, ((words, "dim"),), rows, start, tracks=True)


def _row(one: Decided, width: int) -> Row:
    mark: Span = (" · ", "faint")
    if one.refused:
        mark = (" ✗ ", "bad")
    elif one.overridden:
        mark = (" * ", "accent")
    return _line(one, one.choice, mark, "text" if one.overridden else "dim", width)


def _open(asked: Asked, width: int) -> Row:
    return _line(asked, f"{asked.default}?", (" ◆ ", "accent"), "strong", width)


def _line(one: Asked | Decided, choice: str, mark: Span, role: Role, width: int) -> Row:
    names = one.id.rpartition("/")[2].replace("+", " + ")
    column = max(10, min(36, width - 26))
    spans: list[Span] = [
        mark,
        text(pad(one.kind, 9), "dim"),
        text(pad(keep_end(names, column), column), role),
        text(f" {choice}", "strong" if role != "dim" else "text"),
    ]
    if width >= WIDE and one.rule:
        spans.append(text(f"  {rule_words(one.rule)}", "faint"))
    first = one.id.rpartition("/")[2].split("+")[0]
    return Row(
        body=tuple(spans),
        at=ToDecision(one.id),
        selects=refs.node(_lowered(one.graph), first),
        copies=one.id,
    )


def _lowered(graph: str) -> str:
    return graph if graph.endswith("/lowered") else f"{graph}/lowered"
