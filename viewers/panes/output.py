"""What the user's program printed."""

from __future__ import annotations

from compiler.trace.records import Output, OutputCapped
from viewers.kit.spans import Role, text
from viewers.panes.rows import Content, Row, Rows, empty
from viewers.panes.view import View
from viewers.words import bytes_text, plural


def content(view: View, width: int) -> Content:
    """Both streams in order; stderr is marked."""
    lines: list[tuple[str, bool]] = []
    open_stream = ""
    for record in view.recording.all(Output):
        parts = record.text.split("\n")
        if lines and open_stream == record.stream:
            lines[-1] = (lines[-1][0] + parts[0], lines[-1][1])
            parts = parts[1:]
        lines.extend((part, record.stream == "stderr") for part in parts)
        open_stream = record.stream
        if lines and not lines[-1][0]:
            lines.pop()
            open_stream = ""
    capped = view.recording.all(OutputCapped)
    if not lines:
        words = "nothing printed yet" if view.live else "nothing was printed before it was cut off"
        if view.recording.end is not None:
            words = "the program printed nothing"
        return Content("output", rows=empty(width, words))

    def make(index: int) -> Row:
        words, error = lines[index]
        role: Role = "warn" if error else "text"
        mark = "! " if error else "  "
        return Row(gutter=((mark, "warn"),), body=(text(words, role),), key=f"output:{index}")

    right = plural(len(lines), "line")
    if capped:
        right += f" · cut at {bytes_text(capped[0].cap_bytes)}"
    return Content(
        "output",
        right=((right, "dim"),),
        rows=Rows(len(lines), make, [""] * len(lines)),
        start=f"output:{len(lines) - 1}",
        follows=True,
    )
