"""Lines of generated code with the origins that each computes, the scopes that hold them, and the
names that no identifier may have."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcw.compiler.codegen.cpp.vocabulary import NAMES, Lanes
from tcw.compiler.codegen.nests.nest_values import Level
from tcw.compiler.loops.operators import OPERATORS

INDENT = "    "
RESERVED_WORDS = """\
alignas and asm auto bool bitand bitor break case catch char class compl concept const continue
default delete do double else enum explicit export extern false float for friend goto if inline
int long mutable namespace new not operator or private protected public register requires
return short signed sizeof static struct switch template this throw true try typedef typename
union unsigned using virtual void volatile while xor

block unit_begin unit_end row_step step count i k lane
wrapped checked wrapped_checked out_of_range code
Part Task parallel on_each_thread threads turn wait_for_turn end_turn
PartInTurn TaskInTurn parallel_in_turn on_each_thread_in_turn
"""

RESERVED = frozenset(RESERVED_WORDS.split()) | frozenset(OPERATORS) | NAMES
"""C++ keywords and the names of functions in the prelude, which variables must not shadow."""


@dataclass(slots=True)
class Code:
    """Lines of code in order."""

    lines: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    loops: list[int] = field(default_factory=list)
    """Where its outermost loops over axes, units or blocks begin: indices into `lines`."""

    def add(self, text: str, origins: tuple[str, ...] = ()) -> None:
        self.lines.append((text, origins))

    def enclose(self, header: str, inner: Code, footer: str = "}") -> None:
        """Add `header {`, the inner lines indented by one level, and `}`."""
        self.add(f"{header} {{" if header else "{")
        self.loops.extend(len(self.lines) + place for place in inner.loops)
        self.lines.extend((INDENT + text, origins) for text, origins in inner.lines)
        self.add(footer)

    def loop(self, header: str, inner: Code) -> None:
        """Add a loop, `for (…) {`; those inside it are part of it."""
        start = len(self.lines)
        self.enclose(header, Code(inner.lines))
        self.loops.append(start)

    def extend(self, other: Code) -> None:
        self.loops.extend(len(self.lines) + place for place in other.loops)
        self.lines.extend(other.lines)


class Scope(Level):
    """One loop level: the axis indices available in it, and its code.

    A value is computed in the outermost scope that has all axes that it varies over.
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
        self.own = own or {}
        """axis -> (text, sign): what this scope contributes to the index along the axis."""
        super().__init__(parent, frozenset(self.own) - {partial})
        self.lanes = lanes
        """Lane operations for registers in this scope; 1 lane outside lane loops."""
        self.is_lane = is_lane
        self.count = count
        """If set, only this many lanes hold data."""
        self.code = Code()
        self.partial = partial
        """The axis along which this scope has only the start of its unit."""
        self.flipped = flipped
        """The scope starts at the axis's last element, and the lanes run backwards from there."""

    def index(self, axis: int) -> str:
        """The axis's index; in a lane scope, that of the first lane."""
        text = ""
        for scope in reversed(list(self.chain())):
            if axis in scope.own:
                part, sign = scope.own[axis]
                text = f"{text} {'-' if sign < 0 else '+'} {part}" if text else part
        return text or "0"

    def sign(self, axis: int) -> int:
        """-1 if the loop traverses the axis backwards, else 1."""
        return next((s.own[axis][1] for s in self.chain() if axis in s.own), 1)
