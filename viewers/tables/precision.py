"""How far the results of kernels are from float64's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcw.compiler.trace.precision import worst_output
from tcw.compiler.trace.records import KernelPrecision
from tcw.viewers.kit.cells import cut
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.spans import Role, Span
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.words import error_text

NAME = 40
"""Maximum number of cells of a kernel's name."""
_HEADS = ("", "kernel", "result", "error", "eager's", "bound", "")
_DROP = (2, 5, 4)
MARKS: dict[bool | None, Span] = {True: ("✓", "good"), False: ("✗", "bad"), None: ("·", "dim")}
"""By whether the results are within their bounds; None: not compared."""


def precision_lines(
    found: Sequence[KernelPrecision],
    name: Callable[[KernelPrecision], str],
    width: int,
    indent: int,
    note: Callable[[KernelPrecision], str] = lambda one: "",
) -> list[TextLine]:
    """A head, then a line for each kernel: its worst result. `note`: a last column, if it says
    anything."""
    rows: list[list[Cell]] = [[(word, "dim") for word in _HEADS]]
    rows += [_cells(one, cut(name(one), NAME), note(one)) for one in found]
    return table(rows, "llfrrrf", width, indent, _DROP)


def _cells(one: KernelPrecision, name: str, note: str) -> list[Cell]:
    worst = worst_output(one)
    role: Role = "bad" if one.within is False else "text"
    if worst is None:
        return [MARKS[one.within], name, "", ("–", "dim"), "", "", (note, "dim")]
    return [
        MARKS[one.within],
        (name, role),
        (worst.node, "dim"),
        (error_text(worst.error), role),
        (error_text(worst.eager_error), "dim"),
        (error_text(worst.bound), "dim"),
        (note, "bad" if role == "bad" else "dim"),
    ]
