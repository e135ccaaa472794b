"""The syntax tree of a text that may be anything."""

from __future__ import annotations

import ast
import warnings


def statements(source: str | bytes) -> ast.Module:
    """The statements of a file; empty if the text is not Python. Python's warnings about it,
    such as an invalid escape, are not shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
