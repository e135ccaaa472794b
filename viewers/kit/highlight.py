"""Source text to coloured lines, by Pygments, in a few low-chroma roles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from tcw.viewers.kit.spans import Line, Role, Span, with_role
from tcw.viewers.plain import plain

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

Language = Literal["python", "cpp", "none"]

LIMIT = 400_000
"""Characters; a longer text is shown without colour, at once."""


@lru_cache(maxsize=8)
def _lexer(language: Language) -> Lexer:
    if language == "cpp":
        from pygments.lexers.c_cpp import CppLexer

        return CppLexer(stripnl=False, ensurenl=False)  # type: ignore[no-untyped-call]
    from pygments.lexers.python import PythonLexer

    return PythonLexer(stripnl=False, ensurenl=False)


_ROLES: tuple[tuple[str, Role], ...] = (
    ("Token.Comment.PreprocFile", "string"),
    ("Token.Comment", "comment"),
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Punctuation", "dim"),
    ("Token.Operator", "dim"),
)
"""The first that a token's name starts with."""


@lru_cache(maxsize=256)
def _role(token: _TokenType) -> Role:
    name = str(token)
    return next((role for start, role in _ROLES if name.startswith(start)), "text")


@lru_cache(maxsize=64)
def highlight(body: str, language: Language) -> Sequence[Line]:
    """One line of plain spans per line of `body`, as many as `body.split("\\n")` has."""
    if language == "none" or len(body) > LIMIT:
        return [((plain(line), "text"),) for line in body.split("\n")]
    lines: list[list[Span]] = [[]]
    for token, value in _lexer(language).get_tokens(body):
        role = _role(token)
        for index, part in enumerate(value.split("\n")):
            if index:
                lines.append([])
            if part:
                lines[-1].append((plain(part), role))
    wanted = body.count("\n") + 1
    lines.extend([] for _ in range(wanted - len(lines)))
    return [tuple(line) for line in lines[:wanted]]


def mark(line: Line, needle: str) -> Line:
    """`line` with every occurrence of `needle`, in upper or lower case, given the role `hit`."""
    words = "".join(words for words, _ in line).casefold()
    wanted = needle.casefold()
    at = words.find(wanted)
    while at >= 0 and wanted:
        line = with_role(line, at, at + len(wanted), "hit")
        at = words.find(wanted, at + len(wanted))
    return line
