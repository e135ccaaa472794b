"""Text as Markdown, and a comment that stays within GitHub's limit on its size.

Text from a trace is data: it renders as itself, mentions nobody, links nowhere and ends no block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcw.viewers.kit.cells import cut
from tcw.viewers.plain import plain, plain_lines

MOST_CHARACTERS = 60_000
"""GitHub rejects a comment of more than 65,536; a bot may add text of its own."""
MOST_FOLDED = 12_000
"""Characters of one folded part, so that it leaves room for the others."""
LONGEST = 300
"""Cells of one phrase."""
_FEWEST_ROWS = 5
"""A folded text is left out if there is no room for more."""

_SPECIAL = re.compile(
    r"[\\`*{}\[\]<>#|~@&$]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # not emphasis within a word
    r"|^[-=]|^\+(?=\s|$)|^\d+[.)](?=\s|$)"  # a list, a rule
    r"|://|\bwww\.|:(?=[\w+-]+:)|(?<=\bGH)-"
)
_SPLIT = "&#8203;"
"""A zero-width space. GitHub looks for mentions and issue numbers in the rendered text, where
escaping them has no effect."""
_MENTIONS = re.compile(r"@|#(?=\d)|(?<=\bGH)-")


def escaped(text: str) -> str:
    """A phrase that renders as itself: no markup, mention, issue number, link or picture. Cut at
    `LONGEST` cells."""
    phrase = cut(" ".join(plain_lines(text)).strip(), LONGEST)
    return _SPECIAL.sub(_entities, phrase)


def _entities(found: re.Match[str]) -> str:
    shown = "".join(f"&#{ord(one)};" for one in found[0])
    return shown + _SPLIT if _MENTIONS.match(found.string, found.start()) else shown


def code(text: str) -> str:
    """A phrase as a code span; "" for none."""
    phrase = cut(" ".join(plain_lines(text)), LONGEST)
    longest = max((len(run) for run in re.findall("`+", phrase)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {phrase} {fence}" if longest else f"`{phrase}`" if phrase else ""


def cell_code(text: str) -> str:
    """The same within a table, where a `|` ends the cell unless a single backslash precedes it."""
    return escaped(text) if "\\|" in text else code(text).replace("|", "\\|")


def fenced(rows: Sequence[str], language: str = "text") -> list[str]:
    """Rows as a block of code, which no row can end."""
    shown = [plain(row).rstrip() for row in rows]
    longest = max((len(run) for row in shown for run in re.findall("`+", row)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *shown, fence]


class Comment:
    """A text of at most `MOST_CHARACTERS`: its beginning is kept, and what is left out is named at
    its end."""

    def __init__(self, marker: str, heading: str) -> None:
        """`marker`: the first line, always the same, by which a bot finds its comment."""
        self._lines = [marker, f"### {heading}", ""]
        self._left = MOST_CHARACTERS - _size(self._lines)
        self._left_out: list[str] = []

    def add(self, lines: Sequence[str], what: str) -> None:
        """Lines that are shown at once, all or none. `what`: their name if they are left out."""
        if _size(lines) > self._left:
            self._left_out.append(what)
        else:
            self._put(lines)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], what: str) -> None:
        """A table of as many rows as there is room for; the cells are Markdown. `what`: the name of
        a row, in the plural."""
        lines = [_row(head), "|" + "---|" * len(head)]
        room = self._left // 2
        taken = _size(lines)
        for row in rows:
            taken += len(_row(row)) + 1
            if taken > room:
                break
            lines.append(_row(row))
        self._put([*lines, ""])
        if len(rows) > len(lines) - 2:
            self._left_out.append(f"{len(rows) - len(lines) + 2:,} {what}")

    def fold(self, title: str, lines: Sequence[str]) -> None:
        """Lines that are shown on a click, all or none."""
        self.add(_folded(title, lines), title)

    def fold_text(self, title: str, rows: Sequence[str], language: str = "text") -> None:
        """A text that is shown on a click, as far as there is room for it."""
        room = min(MOST_FOLDED, self._left) - _size(_folded(title, fenced((), language)))
        kept, taken = 0, 0
        for row in rows:
            taken += len(plain(row).rstrip()) + 1
            if taken > room:
                break
            kept += 1
        if kept < min(_FEWEST_ROWS, len(rows)):
            self._left_out.append(title)
            return
        block = _folded(title, fenced(rows[:kept], language))
        if _size(block) > self._left:  # a long fence
            self._left_out.append(title)
            return
        self._put(block)
        if kept < len(rows):
            self._left_out.append(f"{len(rows) - kept:,} lines of {title}")

    def text(self, elsewhere: str) -> str:
        """The whole comment. `elsewhere`: where to find what is left out, as Markdown."""
        lines = list(self._lines)
        if self._left_out:
            names = "; ".join(escaped(one) for one in self._left_out[:_NAMED])
            more = len(self._left_out) - _NAMED
            names += f"; {more:,} more" if more > 0 else ""
            lines += ["", f"Left out, to stay within a comment's size: {names}. {elsewhere}"]
        return "\n".join(lines).rstrip("\n") + "\n"

    def _put(self, lines: Sequence[str]) -> None:
        self._lines += lines
        self._left -= _size(lines)


_NAMED = 10
"""Maximum number of parts named that are left out."""


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    summary = f"<summary>{escaped(title)}</summary>"
    return ["<details>", summary, "", *lines, "", "</details>", ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)
