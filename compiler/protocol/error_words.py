"""An error in one line, and what was meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def first_line(text: str) -> str:
    """The first non-blank line, stripped; "" if there is none."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def error_line(error: BaseException, most: int = 300) -> str:
    """`ValueError: ` and the first line of its message, in at most `most` characters."""
    return f"{type(error).__name__}: {first_line(str(error))}"[:most]


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`Did you mean 'kernels'?`; `otherwise` if no known name is close."""
    close = get_close_matches(word, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else otherwise
