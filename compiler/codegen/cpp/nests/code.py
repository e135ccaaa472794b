"""Lines of generated code with the origins that each computes, and the scopes they stand in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler.codegen.cpp.vocabulary import Lanes

INDENT = "    "


@dataclass(slots=True)
class Code:
    """Lines in order."""

    lines: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def add(self, text: str, origins: tuple[str, ...] = ()) -> None:
        self.lines.append((text, origins))

    def enclose(self, header: str, inner: Code, footer: str = "}") -> None:
        """`header {`, the inner lines one step to the right, `}`."""
        self.add(f"{header} {{" if header else "{")
        self.lines.extend((INDENT + text, origins) for text, origins in inner.lines)
        self.add(footer)

    def extend(self, other: Code) -> None:
        self.lines.extend(other.lines)


class Scope:
    """One level of the loops: what is known in it, and its code.

    A value is computed in the outermost scope that knows all axes that it varies over.
    """

    def __init__(
        self,
        parent: Scope | None,
        lanes: Lanes,
        own: dict[int, tuple[str, int]] | None = None,
        *,
        is_lane: bool = False,
        partial: int | None = None,
        flipped: bool = False,
        count: str | None = None,
    ) -> None:
        self.parent = parent
        self.lanes = lanes
        """Of the registers in this scope: 1 outside of lane loops."""
        self.own = own or {}
        """axis -> (text, sign): what this scope adds to the index along the axis."""
        self.is_lane = is_lane
        self.count = count
        """Only this many lanes hold data."""
        self.code = Code()
        self.memo: dict[object, str] = {}
        self.depth: int = parent.depth + 1 if parent else 0
        self.partial = partial
        """The axis along which this scope only knows where its unit starts."""
        self.flipped = flipped
        """It starts at the axis's last element, from which the lanes go backwards."""
        known = parent.axes if parent else frozenset()
        self.axes: frozenset[int] = known | frozenset(self.own) - {partial}
        """Axes whose index is known here."""

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, outwards."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def index(self, axis: int) -> str:
        """The axis's index: in a lane scope that of the first lane."""
        text = ""
        for scope in reversed(list(self.chain())):
            if axis in scope.own:
                part, sign = scope.own[axis]
                text = f"{text} {'-' if sign < 0 else '+'} {part}" if text else part
        return text or "0"

    def sign(self, axis: int) -> int:
        """-1 where the loop runs through the axis backwards."""
        return next((s.own[axis][1] for s in self.chain() if axis in s.own), 1)
