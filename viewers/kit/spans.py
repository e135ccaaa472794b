"""Spans: pieces of text with a role, which a theme turns into a style. A line is a few of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from rich.cells import cell_len

from tcw.viewers.plain import plain

Role = Literal[
    "text", "dim", "faint", "strong", "accent", "title", "good", "bad", "warn", "hot",
    "keyword", "string", "number", "comment",
    "bad-range", "here", "hit", "shared", "bar", "bar-hot", "bar-warn", "bar-accent",
    "bar-good", "bar-bad", "key",
    "turn", "button", "off",
    "fill-0", "fill-1", "fill-2", "fill-3", "fill-4", "fill-5", "fill-call",
]  # fmt: skip
"""What a span means. `bad-range`, `here` (what runs now) and `hit` tint the background, `shared` is
a buffer of two loop nests, `fill-…` is the background of a group in the picture of a graph. `turn`
is filled: it is the reader's turn; `button` can be pressed, `off` not now."""

Span = tuple[str, Role]
Line = tuple[Span, ...]


def text(words: str, role: Role = "text") -> Span:
    """A span of the user's or torch's words, made safe for a terminal."""
    return plain(words), role


def words_of(line: Iterable[Span]) -> str:
    """The text of a line."""
    return "".join(words for words, _ in line)


def width_of(line: Iterable[Span]) -> int:
    """Cells that a line takes."""
    return sum(cell_len(words) for words, _ in line)


def part(line: Iterable[Span], start: int, end: int) -> Line:
    """The characters from `start` to `end` of a line, each with its role."""
    spans: list[Span] = []
    at = 0
    for words, role in line:
        piece = words[max(0, start - at) : max(0, end - at)]
        if piece:
            spans.append((piece, role))
        at += len(words)
    return tuple(spans)


def with_role(line: Line, start: int, end: int, role: Role) -> Line:
    """`line` with the characters from `start` to `end` given `role`."""
    inside = ((words, role) for words, _ in part(line, start, end))
    last = len(words_of(line))
    return (*part(line, 0, start), *inside, *part(line, max(start, end), last))


def clip(line: Iterable[Span], start: int, width: int) -> Line:
    """At most `width` cells of a line, from cell `start` on; a wide character that is cut in half
    leaves a blank."""
    spans: list[Span] = []
    at = 0
    for words, role in line:
        size = cell_len(words)
        low, high = max(start, at), min(start + width, at + size)
        if low < high:
            if high - low < size:
                words = _cells(words, low - at, high - at)
            spans.append((words, role))
        at += size
        if at >= start + width:
            break
    return tuple(spans)


def _cells(words: str, low: int, high: int) -> str:
    if words.isascii():
        return words[low:high]
    kept: list[str] = []
    at = 0
    for character in words:
        size = cell_len(character)
        if at >= low and at + size <= high:
            kept.append(character)
        elif at < high and at + size > low:
            kept.append(" " * (min(high, at + size) - max(low, at)))
        at += size
    return "".join(kept)
