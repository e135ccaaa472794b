"""The syntax tree of a text that may be anything."""

from __future__ import annotations

import ast
import warnings


def statements(source: str | bytes) -> ast.Module:
    """The statements of a file; none of a text that is no Python. Its warnings, about an invalid
    escape for instance, are its author's and not shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
