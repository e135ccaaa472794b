"""Kernels and library calls: what each is called, its lines, what it is written in, its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcw.compiler.trace.records import SavedValue
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.cells import cut
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.labels import WRITTEN_IN
from tcw.viewers.summary.kernels import KernelRow
from tcw.viewers.words import bytes_text, plural, seconds_text, shape_text

_DROP = (5, 6, 4, 3)
"""What a narrow table drops: never the name, the lines and the time."""
_NAME = 22
"""Minimum width of a name, in cells, before a column is dropped."""


def kernels_lines(
    rows: Sequence[KernelRow],
    names: FileNames,
    width: int,
    indent: int,
    *,
    main: str = "",
    seconds: Mapping[str, float] | None,
    in_pane: bool = False,
) -> list[TextLine]:
    """A line for each kernel. `main`: the file whose name is left out of the places; `seconds`:
    kernel id -> its time, where that was measured; `in_pane`: registers and spills are shown, and
    a heading above the kernels says which are predicted."""
    room = width * 3 // 10
    cells = [_cells(row, _place(row, names, main, room), seconds or {}, in_pane) for row in rows]
    return table(cells, "rfllrrlr", width, indent, _DROP, least=_NAME)


def _cells(row: KernelRow, place: str, seconds: Mapping[str, float], in_pane: bool) -> list[Cell]:
    kernel = row.kernel
    language = WRITTEN_IN[kernel.language]
    role: Role = "text" if kernel.generated else "dim"
    took = seconds.get(kernel.id)
    return [
        (kernel.id, "faint"),
        (row.name, role),
        (place, "dim"),
        (language + (" predicted" if kernel.predicted and not in_pane else ""), "dim"),
        (plural(kernel.loop_nests, "loop nest") if kernel.loop_nests else "", "dim"),
        (plural(row.text_lines, "line") if row.text_lines else "", "dim"),
        (_registers(row) if in_pane else "", "dim"),
        "" if took is None else seconds_text(took),
    ]


def _place(row: KernelRow, names: FileNames, main: str, room: int) -> str:
    """`17, 18`, `block.py:17, 18; rope.py:31`, in few words where those do not fit; why there is no
    line."""
    if not row.lines:
        return cut(f"no line: {row.kernel.no_line or 'not recorded'}", room)
    whole = names.lines(row.lines)
    elsewhere = any(file != main for file, _ in row.lines)
    return whole if elsewhere and len(whole) <= room else names.few(row.lines, main, room)


def _registers(row: KernelRow) -> str:
    """`96 registers, 1.0 KB spilled`, of the last architecture."""
    last = row.binaries[-1] if row.binaries else None
    if last is None or last.registers is None:
        return ""
    spilled = f", {bytes_text(last.spill_bytes)} spilled" if last.spill_bytes else ""
    return plural(last.registers, "register") + spilled


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
