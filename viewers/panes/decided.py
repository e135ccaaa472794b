"""The decisions of a compile, of any kind, in the order of making; the open one last."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tcw.compiler.protocol.decision import split_id
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Decided
from tcw.viewers.kit.cells import keep_end, pad
from tcw.viewers.kit.spans import Role, Span, text
from tcw.viewers.panes.decision_bar import names
from tcw.viewers.panes.rows import Content, Row, empty
from tcw.viewers.panes.targets import ToDecision
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.fusion import rule_words
from tcw.viewers.words import plural

WIDE = 70
"""From this width on the rule is shown."""


def content(view: View, width: int) -> Content:
    """A row each: kind, names, choice, and the rule if there is room."""
    prefix = view.compile_id + "/"
    last = [
        one for one in view.recording.decisions.decided.values() if one.graph.startswith(prefix)
    ]
    asked = view.asked
    shown = [one for one in last if asked is None or one.id != asked.id]
    every: list[Decided] = [*shown, *([asked] if asked is not None else [])]
    column = _column(every, width)
    rows = [_row(one, column, width) for one in shown]
    if asked is not None:
        rows.append(_line(asked, f"{asked.default}?", (" ◆ ", "accent"), "strong", column, width))
    if not rows:
        name = view.compile_id or "this recording"
        why = f"no decision of {name} was recorded"
        return Content("decisions", rows=empty(width, why, view.not_reached("fusion")))
    overruled = sum(one.overridden for one in last)
    said = [plural(len(shown), "decision")] if shown else []
    said += [f"{overruled} overridden"] if overruled else []
    said += ["1 open"] if asked is not None else []
    words = " · ".join(said)
    start = str(ToDecision(asked.id)) if asked is not None else ""
    return Content("decisions", view.compile_id, ((words, "dim"),), rows, start, tracks=True)


def _row(one: Decided, column: int, width: int) -> Row:
    mark: Span = (" · ", "faint")
    if one.refused:
        mark = (" ✗ ", "bad")
    elif one.overridden:
        mark = (" * ", "accent")
    return _line(one, one.choice, mark, "text" if one.overridden else "dim", column, width)


def _column(shown: Sequence[Decided], width: int) -> int:
    """Cells of the names; more than 36 only if the rule still fits beside them."""
    least = max(10, min(36, width - 26))
    longest = max((cell_len(plain(names(one.id))) for one in shown[:400]), default=0)
    rules = max((cell_len(rule_words(one.rule)) for one in shown[:400] if one.rule), default=0)
    room = width - 26 - (rules + 2 if width >= WIDE else 0)
    return max(least, min(longest, room))


def _line(one: Decided, choice: str, mark: Span, role: Role, column: int, width: int) -> Row:
    subject = plain(names(one.id))
    spans: list[Span] = [
        mark,
        text(pad(one.kind, 9), "dim"),
        text(pad(keep_end(subject, column), column), role),
        text(f" {choice}", "strong" if role != "dim" else "text"),
    ]
    if width >= WIDE and one.rule:
        spans.append(text(f"  {rule_words(one.rule)}", "faint"))
    first = split_id(one.id)[2][0]
    return Row(
        body=tuple(spans),
        at=ToDecision(one.id),
        selects=refs.node(_lowered(one.graph), first),
        copies=one.id,
    )


def _lowered(graph: str) -> str:
    return graph if graph.endswith("/lowered") else f"{graph}/lowered"
