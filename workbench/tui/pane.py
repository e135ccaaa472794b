"""A pane: a title row and the rows of a `Content`, painted line by line as they are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tcw.compiler.trace.provenance import Quality
from tcw.compiler.trace.refs import Ref
from tcw.viewers.kit.highlight import mark
from tcw.viewers.kit.spans import width_of
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.rows import Content, Row, Rows
from tcw.viewers.panes.targets import RowTarget
from tcw.workbench.tui.paint import exactly, fill, paint

Make = Callable[[int], Content]


@dataclass(eq=False)
class PaneMessage(Message):
    """Something happened on a row of a pane."""

    pane: PaneView
    row: Row


class Moved(PaneMessage):
    """The cursor is on another row."""


class Opened(PaneMessage):
    """`⏎` or a second click."""


class PaneView(Widget, can_focus=True):
    """Shows what `make` returns for its width. Only the visible rows are ever made."""

    DEFAULT_CSS = "PaneView { height: 1fr; width: 1fr; }"

    def __init__(self, name: str, make: Make, theme: Theme, number: int = 0, rule: bool = True):
        super().__init__()
        self.pane = name
        self.make = make
        self.theme = theme
        self.number = number
        self.rule = rule
        self.spacing = 1
        """Lines per row."""
        self.content = Content(name)
        self.cursor = -1
        self.top = 0
        self.left = 0
        self.spot = -1
        """The counterpart that `n` went to."""
        self.selected: Ref = ""
        self.needle = ""
        """The searched text, highlighted in every row."""
        self.lit: dict[int, Quality] = {}
        self._made = False
        self._settling = False
        """Whether it was just laid out, and the reader has not moved in it since: its height may
        still change."""
        self._shown = 0
        """Rows that fitted when the content was made."""
        self._painted: list[tuple[object, ...]] = []
        """What each line on the screen was painted from."""

    @property
    def active(self) -> bool:
        """Whether the reader is in this pane. (`has_focus` lags behind the screen.)"""
        return self.screen.focused is self

    @property
    def inner_width(self) -> int:
        return max(1, self.size.width - (1 if self.rule else 0))

    @property
    def page(self) -> int:
        return max(1, (self.size.height - 1) // self.spacing)

    @property
    def rows(self) -> Sequence[Row]:
        return self.content.rows

    @property
    def row(self) -> Row:
        """The row under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else Row()

    def update(self, selected: Ref, lit: dict[Ref, Quality], reset: bool = False) -> None:
        """Rebuild the content; the cursor stays on its row if that is still there."""
        if not self.size.width:
            return
        key = "" if reset or not self._made else self.row.key
        at_end = self.cursor >= len(self.rows) - 1
        before = self.content.start
        self.content = self.make(self.inner_width)
        went_on = self._made and self.content.tracks and self.content.start != before
        resized, self._shown = self.page != self._shown, self.page
        if reset or not self._made:
            self.top = self.left = 0
            self.selected, self._settling = selected, True
            key = self.content.start
        elif resized and self._settling:
            self.top = 0
        self._made = True
        elsewhere = self.content.tracks and (went_on or not self.active)
        if self.content.start and (elsewhere or (self.content.follows and at_end)):
            key = self.content.start
        self.cursor = self._find(key)
        self.relight(selected, lit)
        out_of_sight = resized and not self.active and not self.visible_row(self.cursor)
        if went_on or (self.content.centred and (reset or out_of_sight)):
            self._bring()

    def relight(self, selected: Ref, lit: dict[Ref, Quality]) -> None:
        """Tint the counterparts of a selection; scroll only if none of them is visible."""
        self._settling = self._settling and selected == self.selected
        self.selected = selected
        refs = self.content.refs
        self.lit = {index: lit[ref] for index, ref in enumerate(refs) if ref and ref in lit}
        self.spot = -1
        own = next((i for i, ref in enumerate(refs) if ref and ref == selected), -1)
        if own >= 0 and not self.active:
            self.cursor = own if self.rows[own].key else self.cursor
        targets = [own] if own >= 0 else [i for i, q in self.lit.items() if q == "exact"]
        targets = targets or list(self.lit)
        if self.content.still:
            pass
        elif targets:
            if not any(self.visible_row(index) for index in targets):
                self.top = self._clamped(targets[0] - self.page // 3)
        elif not self.visible_row(self.cursor) and self.cursor >= 0:
            self.show(self.cursor)
        if self.content.tracks and self.content.head and not self.visible_row(self.cursor):
            self.show(self.cursor)
        self.top = self._clamped(self.top)
        self.repaint()

    def bring(self, ref: Ref) -> None:
        """Put the cursor on the row of `ref`, if this pane has one."""
        index = next((i for i, one in enumerate(self.content.refs) if one == ref), -1)
        if index >= 0 and self.rows[index].key:
            self._settling = False
            self.cursor = index
            self.show(index)
            self.repaint()

    def _bring(self) -> None:
        """Scroll to the row on which the pane starts."""
        if self.content.centred:
            self.top = self._clamped(self.cursor - self.page // 2)
        else:
            self.show(self.cursor)

    def visible_row(self, index: int) -> bool:
        covered = self.content.head if self.top else 0
        return index < self.content.head or self.top + covered <= index < self.top + self.page

    def _index(self, y: int) -> int:
        """The row in line `y` of the pane, whose title is line 0."""
        place = y // self.spacing - 1
        return place if place < self.content.head else self.top + place

    def _find(self, key: str) -> int:
        if key:
            refs = self.content.refs
            for index, ref in enumerate(refs):
                if ref == key:
                    return index
            keys = self.rows.keys if isinstance(self.rows, Rows) else ()
            if keys:
                return keys.index(key) if key in keys else self._selectable(0, 1)
            for index in range(min(len(self.rows), 5000)):
                if self.rows[index].key == key:
                    return index
        return self._selectable(0, 1)

    def _selectable(self, index: int, step: int) -> int:
        """The nearest row from `index` on, in the direction of `step`, that can be selected."""
        while 0 <= index < len(self.rows):
            if self.rows[index].key:
                return index
            index += step
        return -1

    def _clamped(self, top: int) -> int:
        return max(0, min(top, len(self.rows) - self.page))

    def show(self, index: int) -> None:
        """Scroll just as far as needed, with two rows of context."""
        context = max(self.content.head, min(2, (self.page - 1) // 2))
        if index < self.top + context:
            self.top = self._clamped(index - context)
        elif index >= self.top + self.page - context:
            self.top = self._clamped(index - self.page + 1 + context)

    def move(self, by: int) -> None:
        """Move the cursor over `by` selectable rows; in a pane without any, scroll."""
        if self.cursor < 0:
            self.scroll_rows(by)
            return
        step = 1 if by > 0 else -1
        index = self.cursor
        for _ in range(abs(by)):
            found = self._selectable(index + step, step)
            if found < 0:
                break
            index = found
        if index == self.cursor:
            self.scroll_rows(by)
            return
        self.go(index)

    def go(self, index: int) -> None:
        """Put the cursor on a row."""
        self._settling = False
        self.cursor = index
        self.show(index)
        self.repaint()
        self.post_message(Moved(self, self.row))

    def go_to(self, target: RowTarget) -> None:
        """Put the cursor on the row of a target."""
        self.go(self._find(str(target)))

    def ends(self, last: bool) -> None:
        self._settling = False
        index = self._selectable(len(self.rows) - 1, -1) if last else self._selectable(0, 1)
        self.top = self._clamped(len(self.rows) if last else 0)
        if index >= 0:
            self.go(index)
        self.repaint()

    def scroll_rows(self, by: int) -> None:
        self._settling = False
        self.top = self._clamped(self.top + by)
        self.repaint()

    def scroll_cells(self, by: int) -> None:
        widest = max(
            (width_of(row.body) for row in self.rows[self.top : self.top + self.page]), default=0
        )
        self.left = max(0, min(self.left + by, widest - 8))
        self.repaint()

    def find(self, words: str, start: int, step: int) -> int:
        """The next row whose text contains `words`, wrapping around; -1 for none."""
        count = len(self.rows)
        wanted = words.casefold()
        for offset in range(count):
            index = (start + step * offset) % count
            if wanted in self.rows[index].text.casefold():
                return index
        return -1

    def repaint(self) -> None:
        """Repaint the lines that have changed."""
        height = self.size.height
        if len(self._painted) != height:
            self.refresh()
            return
        width = self.size.width
        common = self._common()
        stale = [y for y in range(height) if self._painted[y] != self._line(y, common)]
        if stale:
            self.refresh(*(Region(0, y, width, 1) for y in stale))

    def _common(self) -> tuple[object, ...]:
        """What the paint of all lines depends on."""
        return (self.inner_width, self.theme.name, self.active)

    def _line(self, y: int, common: tuple[object, ...]) -> tuple[object, ...]:
        """What the paint of one line depends on."""
        if y == 0:
            content = self.content
            return (*common, self.number, content.name, content.subject, content.right)
        if y % self.spacing:
            return common
        index = self._index(y)
        row = self.rows[index] if index < len(self.rows) else Row()
        return (*common, row, self._tint(index, row), self.left, self.needle, index == self.spot)

    def render_line(self, y: int) -> Strip:
        width = self.inner_width
        if len(self._painted) != self.size.height:
            self._painted = [()] * self.size.height
        if y < len(self._painted):
            self._painted[y] = self._line(y, self._common())
        rule: list[Segment] = []
        if self.rule:
            lit = self.active and y == 0
            style = self.theme.rule + (self.theme.style("accent") if lit else Style())
            rule = [Segment("│", style)]
        if y == 0:
            segments = self._title(width)
        elif y % self.spacing:
            segments = []
        else:
            index = self._index(y)
            row = self.rows[index] if index < len(self.rows) else Row()
            tint = self._tint(index, row)
            if self.needle:
                row = replace(row, body=mark(row.body, self.needle))
            segments = paint(row, width, self.left, self.theme, tint)
            if index == self.spot and rule:
                rule = [Segment("▐", self.theme.base("") + self.theme.style("accent"))]
        return Strip([*rule, *exactly(segments, width, self.theme)])

    def _tint(self, index: int, row: Row) -> Tint:
        if index == self.spot or (index == self.cursor and row.key and self.active):
            return "selected"
        if row.ref and row.ref == self.selected:
            return "exact" if self.active else "selected"
        if index in self.lit:
            return self.lit[index]
        if index == self.cursor and row.key:
            return "exact" if self.content.tracks else ""
        return ""

    def _title(self, width: int) -> list[Segment]:
        content = self.content
        focus = self.active
        number = f"[{self.number}] " if self.number else " "
        left = (
            (number, "accent" if focus else "faint"),
            (content.name, "title" if focus else "strong"),
            (f"  {content.subject}" if content.subject else "", "title" if focus else "strong"),
        )
        right = ((" ", "text"), *content.right, (" ", "text")) if content.right else ()
        return fill(left, right, width, self.theme)  # type: ignore[arg-type]

    def on_resize(self) -> None:
        self.screen.resized(self)  # type: ignore[attr-defined]

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-3)

    def _owner(self, index: int) -> int:
        """The row itself if it can be selected, else the nearest such row above with no blank row
        between; -1 for none."""
        while 0 <= index < len(self.rows):
            row = self.rows[index]
            if row.key:
                return index
            if row.heading or not row.text.strip():
                return -1
            index -= 1
        return -1

    def on_click(self, event: events.Click) -> None:
        index = self._owner(self._index(event.y - 1 + self.spacing)) if event.y else -1
        if index < 0:
            return
        if index == self.cursor and event.chain > 1:
            self.post_message(Opened(self, self.row))
        else:
            self.go(index)
