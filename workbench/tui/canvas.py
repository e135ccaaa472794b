"""The picture of a graph as a pane: a cursor that follows edges, panning, zooming. Only visible
cells are made. A picture of many blocks is laid out in a thread, and the one
before stays until it is there.
"""

from __future__ import annotations

from functools import partial

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from tcw.compiler.trace.provenance import Quality
from tcw.compiler.trace.refs import Ref
from tcw.viewers.drawing.blocks import SCALES, all_key
from tcw.viewers.drawing.diagram import Block
from tcw.viewers.drawing.layout import Box, DrawnBlocks, Line
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.picture import Picture
from tcw.viewers.panes.targets import ToBlock
from tcw.viewers.panes.view import View
from tcw.workbench.tui.canvas_paint import CanvasPaint
from tcw.workbench.tui.paint import exactly
from tcw.workbench.tui.pane import Make, Moved, Opened, PaneView

AT_ONCE = 400
"""The most blocks that are laid out before the next frame."""
ACROSS, DOWN = 8, 3
"""Cells and rows of one step of panning."""
ARROWS = {"left": (-ACROSS, 0), "right": (ACROSS, 0), "up": (0, -DOWN), "down": (0, DOWN)}


class CanvasView(PaneView):
    """Shows a `Picture`, and any other content as every pane does."""

    def __init__(self, name: str, make: Make, theme: Theme, number: int = 0, rule: bool = True):
        super().__init__(name, make, theme, number, rule)
        self.drawing: DrawnBlocks | None = None
        """The layout that is shown, of the picture in `drawn`."""
        self.drawn: Picture | None = None
        self.path: list[Line] = []
        """The edges of the block under the cursor."""
        self.choices: list[int] = []
        """Where the last step along an edge could have led as well."""
        self._opened: tuple[int, int] | None = None
        """The first column and row that the picture opened with."""
        self._waiting: Picture | None = None
        self._grip: tuple[int, int] | None = None

    @property
    def picture(self) -> Picture | None:
        """The picture that is shown; None if the pane shows rows."""
        return self.drawn if isinstance(self.content, Picture) else None

    @property
    def block(self) -> Block | None:
        """The block under the cursor."""
        diagram = self.drawn.diagram if self.picture and self.drawn else None
        if diagram is None or not 0 <= self.cursor < len(diagram.blocks):
            return None
        return diagram.blocks[self.cursor]

    # Content

    def update(self, selected: Ref, lit: dict[Ref, Quality], reset: bool = False) -> None:
        if not self.size.width:
            return
        content = self.make(self.inner_width)
        if not isinstance(content, Picture):
            before, self.drawing = self.drawing, None
            self.drawn = self._waiting = None
            super().update(selected, lit, reset or before is not None)
            return
        self.content = content
        first = self.drawing is None
        if self.drawn is None or content.diagram is not self.drawn.diagram:
            self._draw(content)
        elif self.drawing is not None:
            self.drawn = content
            if self._opened == (self.left, self.top):
                self._open()
            self._settle_window()
        self.relight(selected, lit)
        if first and self.lit and not self.drawn_blocks(selected):
            self.cursor = min(self.lit)
            self._trace()
            self._open()

    def drawn_blocks(self, ref: Ref) -> list[int]:
        """The blocks that show a thing, in the picture that is shown."""
        return self.drawn.diagram.blocks_of(ref) if self.drawn is not None else []

    def _draw(self, picture: Picture) -> None:
        """Lay a picture out, here or in a thread."""
        if self._waiting is not None and picture.diagram is self._waiting.diagram:
            return
        if len(picture.rows) <= AT_ONCE:
            self._take(picture, picture.lay_out())
            return
        self._waiting = picture
        self._say(f"laying out {len(picture.rows):,} blocks …")
        self.run_worker(partial(self._lay_out, picture), thread=True, group="layout")

    def _lay_out(self, picture: Picture) -> None:
        layout = picture.lay_out()
        layout.tile(0, 0)  # makes the index, here
        self.app.call_from_thread(self._take_late, picture, layout)

    def _take_late(self, picture: Picture, layout: DrawnBlocks) -> None:
        wanted = self.content.diagram if isinstance(self.content, Picture) else None
        if picture is not self._waiting or picture.diagram is not wanted:
            return
        self._take(picture, layout)
        self.relight(self.selected, self._given)
        self._say(f"{len(picture.rows):,} blocks")

    def _take(self, picture: Picture, layout: DrawnBlocks) -> None:
        """Show a picture: the block under the cursor stays where it is on the screen."""
        before, block = self.drawing, self.block
        old = before.boxes[self.cursor] if before and block else None
        self._waiting = None
        self.drawn, self.drawing = picture, layout
        self.choices = []
        self.cursor = self._same(block) if block else self._find(picture.start)
        if old is None:
            self._made = True
            self._open()
        else:
            new = layout.boxes[self.cursor]
            self.left += new.centre - old.centre
            self.top += new.y - old.y
        self._settle()

    def _open(self) -> None:
        """Move the window to where a picture opens; repeated until the pane has its size."""
        self.left = self.top = 0
        box = self._box(self.cursor)
        if box is not None:
            self.left = max(0, box.centre - self.inner_width // 2)
            self.show(self.cursor)
        self._settle_window()
        self._opened = self.left, self.top

    def _same(self, block: Block) -> int:
        """The block of the present picture that shows what an earlier one showed."""
        assert self.drawn is not None
        blocks = self.drawn.diagram.blocks
        found = next((n for n, one in enumerate(blocks) if one.key == block.key), None)
        if found is None:
            shown = {index: n for n, one in enumerate(blocks) for index in one.nodes}
            found = next((shown[index] for index in block.nodes if index in shown), 0)
        return found

    def _settle(self) -> None:
        """Keep the picture visible; one smaller than the pane is centred."""
        self._settle_window()
        self._trace()

    def _trace(self) -> None:
        """Find the edges of the block under the cursor."""
        self.path = []
        diagram = self.drawn.diagram if self.drawn else None
        if self.drawing is None or diagram is None or not 0 <= self.cursor < len(diagram.blocks):
            return
        for source in diagram.sources[self.cursor]:
            self.path.extend(self.drawing.route(source, self.cursor))
        for reader in diagram.readers[self.cursor]:
            self.path.extend(self.drawing.route(self.cursor, reader))

    _given: dict[Ref, Quality] = {}

    def relight(self, selected: Ref, lit: dict[Ref, Quality]) -> None:
        if not isinstance(self.content, Picture):
            super().relight(selected, lit)
            return
        self.selected, self._given = selected, lit
        if self.drawn is None or self.drawing is None:
            self.refresh()
            return
        self.lit = self.drawn.lit(lit)
        self.spot = -1
        own = self.drawn_blocks(selected)
        if own and not self.active and self.cursor not in own:
            self.cursor = own[0]
            self._trace()
        targets = own or [n for n, q in self.lit.items() if q == "exact"] or list(self.lit)
        if targets and not any(self.visible_row(index) for index in targets):
            self.show(targets[0])
        self.refresh()

    def _find(self, key: str) -> int:
        picture = self.drawn or self.content
        if not isinstance(picture, Picture):
            return super()._find(key)
        blocks = picture.diagram.blocks
        return next((n for n, block in enumerate(blocks) if str(ToBlock(block.key)) == key), 0)

    def find(self, words: str, start: int, step: int) -> int:
        if self.picture is None:
            return super().find(words, start, step)
        return self.picture.find(words, start, step)

    # Moving

    def _box(self, index: int) -> Box | None:
        boxes = self.drawing.boxes if self.drawing is not None else []
        return boxes[index] if 0 <= index < len(boxes) else None

    def visible_row(self, index: int) -> bool:
        if self.picture is None:
            return super().visible_row(index)
        box = self._box(index)
        if box is None:
            return False
        inside = self.left <= box.centre < self.left + self.inner_width
        return inside and self.top <= box.y < self.top + self.page

    def show(self, index: int) -> None:
        if self.picture is None:
            super().show(index)
            return
        box = self._box(index)
        if box is None:
            return
        if box.y < self.top + 1 or box.y + box.height > self.top + self.page - 1:
            near = self.top - self.page < box.y < self.top + 2 * self.page
            if near and box.y < self.top + 1:
                self.top = box.y - 2
            elif near:
                self.top = box.y + box.height + 2 - self.page
            else:
                self.top = box.y - self.page // 3
        width = self.inner_width
        if box.x < self.left or box.x + box.width > self.left + width:
            self.left = box.centre - width // 2
        self._settle()

    def go(self, index: int) -> None:
        if self.picture is None:
            super().go(index)
            return
        self.cursor = index
        self.show(index)
        self.post_message(Moved(self, self.row))  # its answer repaints all panes, this one too

    def move(self, by: int) -> None:
        """Along an edge: to a reader, or with a negative number to what the block reads."""
        if self.picture is None:
            super().move(by)
        elif abs(by) > 1:
            self.pan(0, by)
        else:
            self._follow(by)

    def _follow(self, by: int) -> None:
        diagram = self.drawn.diagram if self.drawn else None
        here = self._box(self.cursor)
        if diagram is None or here is None or self.drawing is None:
            return
        boxes = self.drawing.boxes
        ends = (diagram.readers if by > 0 else diagram.sources)[self.cursor]
        self.choices = sorted(ends, key=lambda n: (boxes[n].centre, boxes[n].y))
        if not ends:
            self._say("nothing reads it here" if by > 0 else "it reads nothing that is drawn")
            return
        layer = self.drawing.layer

        def far(number: int) -> tuple[int, int]:
            return abs(layer[number] - layer[self.cursor]), abs(boxes[number].centre - here.centre)

        self._choose(min(ends, key=far), by)

    def _choose(self, index: int, by: int) -> None:
        self.go(index)
        if len(self.choices) > 1:
            of = self.choices.index(index) + 1
            word = "reader" if by > 0 else "source"
            self._by = by
            self._say(f"{word} {of} of {len(self.choices)}   h l  the others")

    _by = 1

    def scroll_cells(self, by: int) -> None:
        """To the neighbour at the left or right; after a step along an edge to where it could have
        led as well."""
        if self.picture is None:
            super().scroll_cells(by)
            return
        step = 1 if by > 0 else -1
        if len(self.choices) > 1 and self.cursor in self.choices:
            at = self.choices.index(self.cursor) + step
            self._choose(self.choices[at % len(self.choices)], self._by)
            return
        found = self.drawing.beside(self.cursor, step) if self.drawing is not None else -1
        if found >= 0:
            self.choices = []
            self.go(found)
        else:
            self.pan(ACROSS * step, 0)

    def ends(self, last: bool) -> None:
        if self.picture is None:
            super().ends(last)
            return
        self.choices = []
        if self.drawing is not None and self.drawing.boxes:
            self.go(len(self.drawing.boxes) - 1 if last else 0)

    def pan(self, across: int, down: int) -> None:
        """Move the window, not the cursor."""
        if self.drawing is not None:
            self.left += across
            self.top += down
            self._settle_window()
            self.refresh()

    def _settle_window(self) -> None:
        assert self.drawing is not None
        spare = self.drawing.width - self.inner_width
        self.left = spare // 2 if spare < 0 else max(-2, min(self.left, spare + 2))
        self.top = max(0, min(self.top, self.drawing.height - self.page))

    def scroll_rows(self, by: int) -> None:
        if self.picture is None:
            super().scroll_rows(by)
        else:
            self.pan(0, by)

    # Keys and mouse

    @property
    def _view(self) -> View:
        view: View = self.screen.view  # type: ignore[attr-defined]
        return view

    def _say(self, words: str) -> None:
        self.screen.say(words)  # type: ignore[attr-defined]

    def command(self, name: str) -> bool:
        """Carry out a command of the table that means something else in a picture; returns whether
        it was one."""
        view = self._view
        if name == "order":
            view.listed = not view.listed
            self._again()
        elif name in ("larger", "smaller") and self.picture is not None:
            view.scale = max(0, min(len(SCALES) - 1, view.scale + (1 if name == "larger" else -1)))
            self._again()
            self._say(f"{SCALES[view.scale]}, {view.scale + 1} of {len(SCALES)}")
        elif name == "unfold_all" and self.picture is not None:
            key = all_key(self.picture.diagram.graph)
            view.unfolded ^= {key}
            self._again()
            shown = "all groups drawn" if key in view.unfolded else "folded by module"
            self._say(f"{shown}: {len(self.content.rows):,} blocks")
        elif name == "weights" and self.picture is not None:
            view.weights = not view.weights
            self._again()
            self._say("weights shown" if view.weights else "weights hidden")
        else:
            return False
        return True

    def _again(self) -> None:
        self.update(self.selected, self._view.lit, reset=not isinstance(self.content, Picture))
        if self.block is not None:
            self._view.block = self.block.key
        self.screen.refresh_all()  # type: ignore[attr-defined]

    def on_key(self, event: events.Key) -> None:
        """Arrows pan: everywhere else they are `h j k l`."""
        if self.picture is not None and event.key in ARROWS:
            event.stop()
            event.prevent_default()
            self.pan(*ARROWS[event.key])

    def _at(self, x: int, y: int) -> int:
        if self.drawing is None or y < 1:
            return -1
        return self.drawing.at(x - int(self.rule) + self.left, y - 1 + self.top)

    def on_click(self, event: events.Click) -> None:
        if self.picture is None:
            return
        event.prevent_default()  # Textual would call the handler of every base class as well
        index = self._at(event.x, event.y)
        if index < 0:
            return
        if index == self.cursor and event.chain > 1:
            self.post_message(Opened(self, self.row))
        else:
            self.choices = []
            self.go(index)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self.picture is not None and event.y:
            self._grip = event.x, event.y
            self.capture_mouse()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._grip is not None:
            self._grip = None
            self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._grip is not None and event.button:
            x, y = self._grip
            self._grip = event.x, event.y
            self.pan(x - event.x, y - event.y)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.pan(-ACROSS, 0)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.pan(ACROSS, 0)

    # Painting

    def render_line(self, y: int) -> Strip:
        if y == 0 or not isinstance(self.content, Picture):
            return super().render_line(y)
        width = self.inner_width
        rule = [Segment("│", self.theme.rule)] if self.rule else []
        if self.drawing is None or self.drawn is None:
            words = f" laying out {len(self.content.rows):,} blocks …" if y == 2 else ""
            segments = [Segment(words, self.theme.base("") + self.theme.style("dim"))]
        else:
            paint = CanvasPaint(
                self.theme, self.drawn, self.drawing, self.path, self._tint_of, self.needle
            )
            segments = paint.cells(self.top + y - 1, self.left, width)
        return Strip([*rule, *exactly(segments, width, self.theme)])

    def _tint_of(self, index: int) -> Tint:
        if index in (self.spot, self.cursor):
            return "selected" if self.active or index == self.spot else "exact"
        return self.lit.get(index, "")
