"""Values that cross from the forward to the backward: saved or computed again, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcw.compiler.trace.records import SavedValue
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.places import FileNames
from tcw.viewers.words import bytes_text, shape_text

ROLES: dict[str, Role] = {"saved": "hot", "recomputed": "accent", "input": "dim"}
"""What costs memory first, then what costs time, then what exists anyway."""
_REASON = 34
"""Cells of a reason before the shapes go."""


def saved_lines(
    values: Sequence[SavedValue],
    names: FileNames,
    width: int,
    indent: int,
    *,
    main: str = "",
    reasons: Mapping[str, Cell] | None = None,
) -> list[TextLine]:
    """A line for each value. `main`: the file whose name is left out of the places; `reasons`: by
    node, in place of the recorded ones."""
    told = reasons or {}
    room = width * 2 // 9
    rows: list[list[Cell]] = []
    for value in values:
        place = value.location
        rows.append(
            [
                value.node,
                (value.choice, ROLES[value.choice]),
                (bytes_text(value.bytes), "dim"),
                (shape_text(value.tensor.shape) if value.tensor else "", "faint"),
                (names.few([(place.file, place.line)], main, room) if place else "", "dim"),
                told.get(value.node, (value.reason, "dim")),
            ]
        )
    return table(rows, "elrllf", width, indent, (3,), least=_REASON)
