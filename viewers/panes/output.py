"""What the user's program printed, and how it failed, in full."""

from __future__ import annotations

from tcw.compiler.trace.records import Output, OutputCapped
from tcw.viewers.kit.spans import text
from tcw.viewers.panes.rows import Content, Row, Rows, empty, text_row
from tcw.viewers.panes.view import View
from tcw.viewers.words import bytes_text, plural


def content(view: View, width: int) -> Content:
    """Both streams in order, stderr marked; then the failure."""
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
    failure = _failure(view)
    if not lines and not failure:
        words = "nothing printed yet" if view.live else "nothing was printed before it was cut off"
        if view.recording.end is not None:
            words = "the program printed nothing"
        return Content("output", rows=empty(width, words))

    printed, count = len(lines), len(lines) + len(failure)

    def make(index: int) -> Row:
        key = f"output:{index}"
        if index >= printed:
            first = index == printed
            said = text(failure[index - printed], "bad" if first else "text")
            return text_row(said, gutter=(("✗ " if first else "  ", "bad"),), key=key)
        words, error = lines[index]
        said = text(words, "warn" if error else "text")
        return text_row(said, gutter=(("! " if error else "  ", "warn"),), key=key)

    right = plural(printed, "line") if printed else ""
    if capped:
        right += f" · cut at {bytes_text(capped[0].cap_bytes)}"
    return Content(
        "output",
        right=((right, "dim"),) if right else (),
        rows=Rows(count, make, [""] * count),
        start=f"output:{printed if failure else count - 1}",
        follows=not failure,
    )


def _failure(view: View) -> list[str]:
    """What ended the program, and its traceback, which ends with the message."""
    failure = view.summary.failure
    if failure is None:
        return []
    trace = view.recording.text(failure.traceback).rstrip()
    said = trace or (f"{failure.type}: {failure.message}" if failure.message else failure.type)
    return [view.summary.verdict.headline, *said.split("\n")]
