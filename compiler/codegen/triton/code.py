"""Lines of a kernel's text, in scopes: its body, and the loops in it."""

from __future__ import annotations

from dataclasses import dataclass, field

INDENT = "    "


@dataclass(slots=True)
class Scope:
    """One level of a kernel's text. Values are defined once in each."""

    depth: int = 0
    lines: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Each with the origins that it computes."""
    memo: dict[object, str] = field(default_factory=dict)

    def add(self, text: str, origins: tuple[str, ...] = ()) -> None:
        self.lines.append((text, origins))

    def enclose(self, header: str, inner: Scope) -> None:
        """Add `header`, and the lines of `inner` indented below it."""
        self.add(header)
        self.lines.extend((INDENT + text, origins) for text, origins in inner.lines)
