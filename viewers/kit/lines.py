"""Lines of text before colour and encoding: what the command line's text is made of, and what the
panes share with it.

A span's role says what it means; only a theme, or `tcw.viewers.text.lines.write`, knows how that
looks. All text passes through `plain` on its way in, so no raw text of the user's reaches a
terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tcw.viewers.kit.cells import cut, rows_of
from tcw.viewers.kit.spans import Line, Role, Span, part, text, words_of


@dataclass(frozen=True)
class TextLine:
    """One line. `fixed` lines are cut at the width; others wrap, indented by `hang` cells."""

    spans: Line
    hang: int = 0
    fixed: bool = False

    @property
    def text(self) -> str:
        return words_of(self.spans)


BLANK = TextLine(())


def line(*pieces: str | tuple[str, Role], hang: int = 0, fixed: bool = False) -> TextLine:
    """A line from texts and (text, role) pairs; each is made plain."""
    spans = (text(piece) if isinstance(piece, str) else text(*piece) for piece in pieces)
    return TextLine(tuple(span for span in spans if span[0]), hang, fixed)


def apart(blocks: Iterable[Sequence[TextLine]]) -> list[TextLine]:
    """The lines of all blocks, a blank line between two blocks."""
    return [text_line for block in blocks for text_line in (BLANK, *block)][1:]


def prose(label: str, words: str, indent: int = 0) -> list[TextLine]:
    """A labelled text of any number of lines; they keep their indents, blank ones are dropped."""
    width = indent + len(label)
    rows = [row for row in words.splitlines() if row.strip()]
    return [
        line((" " * indent + label if index == 0 else " " * width, "dim"), row, hang=width)
        for index, row in enumerate(rows)
    ]


def fitted(lines: Iterable[TextLine], width: int) -> list[TextLine]:
    """The lines cut or wrapped to `width` cells."""
    done: list[TextLine] = []
    for text_line in lines:
        if cell_len(text_line.text.rstrip()) <= width:
            done.append(text_line)
        elif text_line.fixed:
            shown = cut(text_line.text, width)
            spans = (*part(text_line.spans, 0, len(shown) - 1), ("›", "faint"))
            done.append(TextLine(spans, text_line.hang, True))
        else:
            done.extend(_wrap(text_line, width))
    return done


def _wrap(text_line: TextLine, width: int) -> list[TextLine]:
    hang = min(text_line.hang, width // 2)
    rows = [part(text_line.spans, *ends) for ends in rows_of(text_line.text, width, hang)]
    indent: Span = (" " * hang, "text")
    return [TextLine((indent, *row) if at else row, text_line.hang) for at, row in enumerate(rows)]
