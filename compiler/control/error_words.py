"""An error in one line."""

from __future__ import annotations


def first_line(text: str) -> str:
    """The first non-blank line, stripped; "" if there is none."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def error_line(error: BaseException, most: int = 300) -> str:
    """`ValueError: ` and the first line of its message, in at most `most` characters."""
    return f"{type(error).__name__}: {first_line(str(error))}"[:most]
