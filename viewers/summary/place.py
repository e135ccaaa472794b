"""A source location with the text of its line: what a finding points at."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Location
from tcw.viewers.recording import Recording


@dataclass(frozen=True)
class Place:
    """A source line and a range in it. The texts are the user's, unescaped."""

    file: str
    line: int
    text: str = ""
    """The source line without its end; "" if the trace does not have it."""
    column: int | None = None
    """Start of the range, in characters of `text`; None if torch gave no columns or the text is
    missing."""
    end_column: int | None = None
    """Its end, exclusive; the end of the line if the range continues on the next one."""
    function: str = ""

    @property
    def ref(self) -> refs.Ref:
        return refs.source(self.file, self.line)


def place_of(recording: Recording, location: Location | None, line_text: str = "") -> Place | None:
    """`location` as a place, with text from the trace's sources, else from the record."""
    if location is None:
        return None
    text = recording.line(location.file, location.line) or line_text
    column = end = None
    if text and location.column is not None:
        column = characters(text, location.column)
        if location.end_line is not None and location.end_line > location.line:
            end = len(text.rstrip())
        elif location.end_column is not None:
            end = characters(text, location.end_column)
    return Place(
        file=location.file,
        line=location.line,
        text=text,
        column=column,
        end_column=end,
        function=location.function,
    )


def characters(text: str, byte_offset: int) -> int:
    """How many characters of `text` lie before `byte_offset` bytes of its UTF-8."""
    return len(text.encode("utf-8", "replace")[:byte_offset].decode("utf-8", "ignore"))
