"""Lines of a kernel's text, in scopes: its body, and the loops in it."""

from __future__ import annotations

from tcw.compiler.codegen.nests.nest_values import Level

INDENT = "    "


class Scope(Level):
    """One level of a kernel's text. Values are defined once in each."""

    def __init__(self, parent: Scope | None = None) -> None:
        super().__init__(parent)
        self.lines: list[tuple[str, tuple[str, ...]]] = []
        """Each with the origins that it computes."""

    def add(self, text: str, origins: tuple[str, ...] = ()) -> None:
        self.lines.append((text, origins))

    def enclose(self, header: str, inner: Scope) -> None:
        """Add `header`, and the lines of `inner` indented below it."""
        self.add(header)
        self.lines.extend((INDENT + text, origins) for text, origins in inner.lines)
