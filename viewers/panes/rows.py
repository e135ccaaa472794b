"""What a pane is made of: rows of spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, overload

from tcw.compiler.trace.refs import Ref
from tcw.viewers.kit.cells import wrap
from tcw.viewers.kit.lines import TextLine, fitted
from tcw.viewers.kit.spans import Line, Role, Span, text, words_of
from tcw.viewers.panes.targets import Fold, OpenTarget, RowTarget, ToDecision, ToOverride, ToPair


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a pane. `gutter` and `right` stay when the body scrolls sideways."""

    body: Line = ()
    gutter: Line = ()
    right: Line = ()
    ref: Ref = ""
    """What this row shows, and is highlighted with."""
    key: str = ""
    """Names the row for the reader's cursor, and is never taken apart; "" if it cannot be
    selected."""
    at: RowTarget | None = None
    """What the row represents, if that is more than a ref; it names the row."""
    opens: RowTarget | None = None
    """Where `⏎` leads; to an `OpenTarget` that the row represents without being told. None for its
    ref."""
    selects: Ref = ""
    """What the cursor selects here, if that is not what the row shows."""
    copies: str = ""
    """What `y` copies; "" for the row's text."""
    heading: bool = False
    tint: Literal["", "added", "removed"] = ""
    """Background of the body under the reader's own tints, for a line of a difference; a sign in
    its gutter says the same."""
    decision: str = ""
    """Id of the decision that can be overridden here; "" for none."""

    def __post_init__(self) -> None:
        if self.at is not None and not self.key:
            object.__setattr__(self, "key", str(self.at))
        if self.opens is None and isinstance(self.at, OpenTarget):
            object.__setattr__(self, "opens", self.at)

    @property
    def text(self) -> str:
        return words_of((*self.gutter, *self.body, *self.right))

    @property
    def decision_shown(self) -> str:
        """Id of the decision that the row shows; "" if it shows none."""
        if self.decision:
            return self.decision
        match self.at:
            case ToPair(id) | ToDecision(id) | ToOverride(id):
                return id
        return ""


BLANK = Row()


def text_row(
    *pieces: str | Span,
    gutter: Line = (),
    right: Line = (),
    ref: Ref = "",
    key: str = "",
    at: RowTarget | None = None,
    opens: RowTarget | None = None,
    selects: Ref = "",
    copies: str = "",
    heading: bool = False,
    decision: str = "",
) -> Row:
    """A row whose body is of texts and (text, role) pairs; each is made plain."""
    body = tuple(text(piece) if isinstance(piece, str) else text(*piece) for piece in pieces)
    return Row(
        body, gutter, right, ref, key, at, opens, selects, copies, heading, decision=decision
    )


def prose_rows(words: str, width: int, role: Role = "dim", indent: int = 1) -> list[Row]:
    """Wrapped words."""
    return [text_row((" " * indent + line, role)) for line in wrap(words, width - indent - 1)]


def fold_row(key: str, words: str, opened: bool, *, indent: int = 1) -> Row:
    """The head of what `⏎` folds and unfolds."""
    mark = f"{' ' * indent}{'▾' if opened else '▸'} "
    return text_row((words, "faint"), gutter=((mark, "faint"),), key=key, opens=Fold(key))


class Rows(Sequence[Row]):
    """Rows made when they are shown: a graph of 50,000 nodes costs what is visible."""

    def __init__(
        self, count: int, make: Callable[[int], Row], refs: Sequence[Ref], keys: Sequence[str] = ()
    ) -> None:
        self._count = count
        self._make = lru_cache(maxsize=4096)(make)
        self.refs = refs
        self.keys = keys
        """Keys of the rows, if they are known without making them."""

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        return self._make(index % self._count)

    def __iter__(self) -> Iterator[Row]:
        return (self._make(index) for index in range(self._count))


@dataclass(frozen=True)
class Content:
    """All that a pane shows."""

    name: str
    """`source`, `graph`, …"""
    subject: str = ""
    right: Line = ()
    rows: Sequence[Row] = field(default_factory=tuple)
    start: str = ""
    """Key of the row on which the cursor starts; "" for the first that can be selected."""
    tracks: bool = False
    """The cursor is on `start` while the reader is in another pane."""
    head: int = 0
    """The number of rows at its beginning that do not scroll with the others."""
    still: bool = False
    """Show it from its beginning: it never scrolls by itself."""
    follows: bool = False
    """The end is shown while the trace grows."""
    centred: bool = False
    """A new `start` is shown in the middle of the pane."""

    @property
    def refs(self) -> Sequence[Ref]:
        """The ref of each row, without making lazy rows."""
        if isinstance(self.rows, Rows):
            return self.rows.refs
        return [row.ref for row in self.rows]


def text_rows(
    lines: Iterable[TextLine], width: int, *, key: str = "", copies: str = "", indent: int = 0
) -> list[Row]:
    """Lines of the text's tables as rows of a pane; the first can be selected if it has a `key`."""
    start: Line = ((" " * indent, "text"),) if indent else ()
    return [
        Row(body=(*start, *line.spans), key="" if at else key, copies="" if at else copies)
        for at, line in enumerate(fitted(lines, width - indent - 1))
    ]


def without_ids(content: Content) -> Content:
    """For an audience: a pane's subject is at the right, in place of names and counts."""
    right: Line = ((content.subject, "dim"),) if content.subject else content.right
    return replace(content, subject="", right=right)


def empty(width: int, looked_for: str, next_step: str = "") -> list[Row]:
    """An empty pane: what is missing, and what to do next."""
    said: tuple[tuple[str, Role], ...] = ((looked_for, "dim"), (next_step, "faint"))
    return [
        BLANK,
        *(row for words, role in said if words for row in prose_rows(words, width, role)),
    ]
