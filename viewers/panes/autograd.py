"""What the forward keeps for the backward, what is computed again, and why."""

from __future__ import annotations

from compiler.trace import refs
from compiler.trace.records import Partition, SavedValue
from viewers.panes.names import line_text
from viewers.panes.rows import Content, Role, Row, empty, pad, pad_left, text
from viewers.panes.view import View
from viewers.places import cut
from viewers.words import bytes_text, plural, shape_text

ROLES: dict[str, Role] = {"saved": "hot", "recomputed": "accent", "input": "dim"}


def content(view: View, width: int) -> Content:
    split = next(
        (p for p in reversed(view.recording.all(Partition)) if p.compile_id == view.compile_id),
        None,
    )
    name = view.compile_id
    if split is None:
        return Content("autograd", name, rows=empty(f"{name} has no backward in this recording"))
    values = sorted(split.values, key=lambda value: (value.choice, -(value.bytes or 0)))
    column = max([8, *(len(value.node) for value in values)]) + 1
    rows = [_value(split, value, min(column, 24), width >= 84) for value in values]
    saved = sum(value.choice == "saved" for value in values)
    words = f"{saved} saved, {bytes_text(split.saved_bytes)} · "
    words += f"{plural(split.recomputed, 'operation')} run again"
    return Content("autograd", name, ((words, "dim"),), rows)


def _value(split: Partition, value: SavedValue, column: int, wide: bool) -> Row:
    shape = shape_text(value.tensor.shape) if value.tensor else ""
    return Row(
        gutter=((line_text(value.location), "faint"),),
        body=(
            text(pad(cut(value.node, column - 1), column)),
            text(pad(value.choice, 11), ROLES[value.choice]),
            (pad_left(bytes_text(value.bytes), 9), "dim"),
            text("  " + (pad(shape, 14) if wide else ""), "faint"),
            text(value.reason, "dim"),
        ),
        ref=refs.node(split.forward, value.node),
        key=f"saved:{value.node}",
    )
