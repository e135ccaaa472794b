"""What the forward keeps for the backward, what is computed again, and why."""

from __future__ import annotations

from compiler.trace import refs
from compiler.trace.records import Partition, SavedValue
from compiler.trace.refs import Ref
from viewers.panes.names import line_text
from viewers.panes.rows import Content, Role, Row, empty, pad, pad_left, text, wrap
from viewers.panes.view import View
from viewers.places import cut
from viewers.words import bytes_text, plural, shape_text

ROLES: dict[str, Role] = {"saved": "hot", "recomputed": "accent", "input": "dim"}
"""What costs memory first, then what costs time, then what is there anyway."""


def split_of(view: View) -> Partition | None:
    """How the joint graph of this compile was cut; None where it has no backward."""
    found = reversed(view.recording.all(Partition))
    return next((split for split in found if split.compile_id == view.compile_id), None)


def _sorted(split: Partition) -> list[SavedValue]:
    order = list(ROLES)
    return sorted(split.values, key=lambda value: (order.index(value.choice), -(value.bytes or 0)))


def first(view: View) -> Ref:
    """The value on which the reader starts."""
    split = split_of(view)
    values = _sorted(split) if split is not None else []
    return refs.node(split.forward, values[0].node) if split is not None and values else ""


def reason(view: View, width: int) -> list[Row]:
    """The value that is selected, and in full why it is kept or computed again."""
    split = split_of(view)
    values = split.values if split is not None else ()
    for value in values:
        if split is not None and refs.node(split.forward, value.node) == view.ref:
            title = f"{value.node}   {value.choice}   {bytes_text(value.bytes)}"
            lines = wrap(value.reason, width - 2)[:2]
            return [
                Row(body=(text(title, "strong"),), heading=True),
                *(Row(body=((line, "dim"),)) for line in [*lines, *[""] * (2 - len(lines))]),
            ]
    return []


def content(view: View, width: int) -> Content:
    split = split_of(view)
    name = view.compile_id
    if split is None:
        why = f"{name or 'this recording'} has no backward"
        return Content("autograd", name, rows=empty(width, why, view.not_reached("autograd")))
    values = _sorted(split)
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
