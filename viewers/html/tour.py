"""Visits the screens of a trace: what each pane shows there, and where its rows lead.

A screen is an arrangement at one compile, and what is looked at in it. The way from one to the next
is `Navigator`'s, as in the workbench. Screens are visited nearest first, until the document is as
large as it may be; screens that are left out are counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from tcw.compiler.trace.provenance import Quality
from tcw.viewers.drawing.blocks import SCALES, diagram
from tcw.viewers.drawing.diagram import drawn_folds
from tcw.viewers.html import replay
from tcw.viewers.html.drawn import MOST_BLOCKS, Panel, PanelPlace, Pictured, Screen, drawn, refs_of
from tcw.viewers.html.folds import Conditions, Folded, with_folds
from tcw.viewers.html.pool import Pool, size, spans
from tcw.viewers.html.replay import Make, copy_of, seeds
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import chrome, notes
from tcw.viewers.panes.arrangement import ARRANGEMENTS, PANES, Arrangement, Column
from tcw.viewers.panes.picture import Picture
from tcw.viewers.panes.rows import Content, Row, empty
from tcw.viewers.panes.targets import Fold, RowTarget
from tcw.viewers.reader import Reader

CELLS = 176
"""Width for which the panes are drawn."""
SPINE_CELLS = 32
SCROLL_BAR = 3
"""Cells of a pane that a browser's scroll bar may cover; nothing is drawn there."""
ZOOMS = (0, 1)
"""Scales of a picture that the page has: shapes are in the pane beside it."""
MOST_ROWS = 2000
"""Rows of a pane."""
MOST_OPENED = 30
"""Pictures with a module opened: each is laid out again, and is a large panel."""
_DIGITS = 4
"""Of a screen's number."""


T = TypeVar("T", bound=Hashable)


def _lines(words: Sequence[str]) -> Row:
    """The lines of a block, a span each, of two roles in turn, since equal neighbours are
    joined."""
    return Row(body=tuple((line, "dim" if at % 2 else "text") for at, line in enumerate(words)))


def _size_of_edges(edges: tuple[tuple[int, str], ...]) -> int:
    return 3 + sum(5 + _DIGITS + len(str(row)) for row, _ in edges)


class Tour:
    """The screens of a trace that was read whole."""

    def __init__(self, reader: Reader, most_bytes: int, most_screens: int) -> None:
        self.reader = reader
        reader.view.in_page = True
        self.pool = Pool()
        self.conditions = Conditions()
        self.panels: list[Panel] = []
        self.screens: dict[str, Screen] = {}
        self.tabs: dict[str, str] = {}
        """Arrangement -> its first screen."""
        self.stops: list[tuple[str, str]] = []
        """Label and screen of each place in time, in order."""
        self.puzzles: list[tuple[str, dict[str, str]]] = []
        """The right answer, and the screens by `ask`, `hint`, `fuse`, `apart` and `skip`."""
        self.zooms: dict[int, tuple[str, ...]] = {}
        """Panel with a picture -> the screens that show more and less of the graph."""
        self.left_out = 0
        """Screens that were not visited."""
        self._numbers: dict[Panel, int] = {}
        self._waiting: deque[tuple[str, Make]] = deque()
        self._last: deque[tuple[str, Make]] = deque()
        """Visited last, since a picture with a module opened is a large panel."""
        self._asked: set[str] = set()
        self.bytes = 0
        """Bytes that panels, screens and lights take in the file, or somewhat more."""
        self._counted: set[Hashable] = set()
        self._nodes: dict[Hashable, tuple[int, ...]] = {}
        self._unfolded_rows: dict[Hashable, Folded] = {}
        self._in_sight: dict[Hashable, frozenset[str]] = {}
        self._weighed = 0
        """Refs whose lights are counted."""
        self._most_bytes = most_bytes
        self._most_screens = most_screens

    def go(self) -> None:
        """Visit as much as fits: first the start of each view, then the places in time."""
        for key, make in seeds(self.reader):
            self._ask(key, make)
        self._visit(len(self._waiting))
        if not self.left_out:
            self._replay()
        self._visit()
        for _ in range(MOST_OPENED):
            if self._last and not self.left_out:
                self._waiting.append(self._last.popleft())
                self._visit()
        self.left_out += len(self._last)
        for screen in self.screens.values():
            for place in screen.places:
                for edges in (place.moves, place.opens):
                    for index in [row for row, key in edges.items() if key not in self.screens]:
                        del edges[index]

    @property
    def _full(self) -> bool:
        used = self.bytes + self.pool.bytes
        return used > self._most_bytes or len(self.screens) >= self._most_screens

    def _visit(self, most: int | None = None) -> None:
        """Visit the waiting screens, up to a limit."""
        visited = 0
        while self._waiting and (most is None or visited < most):
            if self._full:
                self.left_out = len(self._waiting)
                break
            key, make = self._waiting.popleft()
            visited += 1
            navigator = make()
            if navigator is not None:
                self._add(key, self._screen(navigator))
                self.tabs.setdefault(navigator.arrangement, key)

    def _add(self, key: str, screen: Screen) -> None:
        self.screens[key] = screen
        self._weigh(screen)

    def _replay(self) -> None:
        """Screens of the past. Their rows lead nowhere: what they led to may be of the future."""
        kept = copy_of(self.reader.navigator)
        for number, stop in enumerate(replay.stops(self.reader)):
            if self._full:
                break
            key = f"stop|{number}"
            self._add(key, self._screen(stop.navigator, linked=False))
            self.stops.append((stop.label, key))
        for number, puzzle in enumerate(replay.puzzles(self.reader, CELLS)):
            if self._full:
                break
            keys = {name: f"puzzle|{number}|{name}" for name in puzzle.bars}
            asked, told = (
                self._screen(navigator, linked=False) for navigator in (puzzle.asked, puzzle.told)
            )
            for name, rows in puzzle.bars.items():
                shown = asked if name in ("ask", "hint") else told
                bar_rows = tuple(self.pool.row(row) for row in rows)
                self._add(keys[name], replace(shown, bar=bar_rows))
            self.puzzles.append((puzzle.truth.choice, keys))
        self.reader.navigator = kept
        kept.view.playhead = 0
        kept.view.run = kept.view.track.run or kept.view.run
        self.reader.show_facts()

    def _weigh(self, screen: Screen) -> None:
        """Count what a screen adds to the file, besides its rows and panels."""
        self.bytes += 30 + size(screen.bar) + (_DIGITS + 1) * len(screen.places)
        for shared in (screen.header, tuple(screen.lit)):
            self.bytes += self._once(shared, size)
        for place in screen.places:
            edges = tuple(place.moves.items()), tuple(place.opens.items())
            for edge in edges:
                self.bytes += self._once(edge, _size_of_edges)
            self.bytes += self._once((place.panel, place.start, *edges), lambda _: 20)
        links = self.reader.view.derived.provenance
        found = list(self.pool.refs.values())[self._weighed :]
        self._weighed += len(found)
        for ref in filter(None, found):  # a link is written at both of its ends
            self.bytes += 12 + 12 * len(self._lit(links.counterparts(ref)))

    def _once(self, value: T, size: Callable[[T], int]) -> int:
        """Bytes of a value that the file has once."""
        if value in self._counted:
            return 0
        self._counted.add(value)
        return size(value)

    def lights(self) -> dict[int, dict[int, bool]]:
        """Ref -> its counterparts that some row shows, and whether exactly."""
        links = self.reader.view.derived.provenance
        found: dict[int, dict[int, bool]] = {}
        for ref in list(self.pool.refs.values()):
            number = self.pool.refs.number(ref)
            lit = self._lit(links.counterparts(ref)) if ref else {}
            if lit:
                found[number] = lit
        return found

    def _lit(self, counterparts: dict[str, Quality]) -> dict[int, bool]:
        known = ((self.pool.refs.known(ref), how) for ref, how in counterparts.items())
        return {number: how == "exact" for number, how in known if number is not None}

    def _ask(self, key: str, make: Make, last: bool = False) -> None:
        if key not in self._asked:
            self._asked.add(key)
            (self._last if last else self._waiting).append((key, make))

    # What is on a screen

    def _screen(self, navigator: Navigator, linked: bool = True) -> Screen:
        view = navigator.view
        arrangement = ARRANGEMENTS[navigator.arrangement]
        view.beside = frozenset(
            slot.pane for column in arrangement.columns for slot in column.slots
        )
        ended = self.reader.recording.end is not None
        state: chrome.State = "replay" if ended else "incomplete"
        places = [self._place(navigator, "spine", SPINE_CELLS, linked)]
        if arrangement.top is not None:
            places.append(self._place(navigator, arrangement.top.pane, _cells(), linked))
        for column in arrangement.columns:
            width = _cells(arrangement, column)
            places += [self._place(navigator, slot.pane, width, linked) for slot in column.slots]
        return Screen(
            navigator.arrangement,
            view.compile_id,
            spans(chrome.header(view, state, CELLS)),
            tuple(self.pool.row(row) for row in chrome.rows(view, navigator.arrangement, CELLS)),
            tuple(places),
            {self.pool.refs.number(ref): how == "exact" for ref, how in view.lit.items()},
        )

    def _place(self, navigator: Navigator, pane: str, cells: int, linked: bool) -> PanelPlace:
        content = self._content(navigator, pane, cells)
        picture = content if isinstance(content, Picture) else None
        folded = self._folded(navigator, pane, cells, content)
        rows = folded.rows
        number = self._panel(pane, content, folded, self._drawn(navigator, picture, linked))
        names = (row.key or row.ref for row in rows)
        start = next((i for i, name in enumerate(names) if name and name == content.start), -1)
        place = PanelPlace(number, start)
        if picture is not None and linked:
            self.zooms.setdefault(number, tuple(self._zooms(navigator)))
        for index, row in enumerate(rows if linked else ()):
            if picture is not None and not self._is_module(picture, index):
                continue  # the page shows what is inside by another zoom
            if row.at is not None and picture is None:
                place.moves[index] = self._led(navigator, pane, row, opened=False)
            if row.opens is not None and folded.folds[index] < 0:
                place.opens[index] = self._led(navigator, pane, row, opened=True)
        return place

    def _folded(self, navigator: Navigator, pane: str, cells: int, content: Content) -> Folded:
        """The rows of a pane, with what is folded in them."""
        view = navigator.view
        known = {frozenset(view.unfolded): content.rows}

        def rows_of(opened: frozenset[str]) -> Sequence[Row]:
            if opened not in known:
                copy = copy_of(navigator)
                copy.view.unfolded = set(opened)
                known[opened] = self._content(copy, pane, cells).rows
            return known[opened]

        if isinstance(content, Picture):
            rows = list(content.rows[:MOST_ROWS])
            return Folded(rows, [0] * len(rows), [-1] * len(rows))
        if not any(isinstance(row.opens, Fold) for row in content.rows[:MOST_ROWS]):
            return with_folds(rows_of, frozenset(view.unfolded), self.conditions, MOST_ROWS)
        # what is folded is the same wherever the rows around it are; a region's ref is that of its
        # lines which is lit
        lit = view.ref if view.derived.profile is not None else ""
        key = pane, cells, view.compile_id, view.variant, view.kernel, lit, tuple(content.rows)
        if key not in self._unfolded_rows:
            self._unfolded_rows[key] = with_folds(
                rows_of, frozenset(view.unfolded), self.conditions, MOST_ROWS
            )
        return self._unfolded_rows[key]

    def _panel(
        self, pane: str, content: Content, folded: Folded, drawn: Pictured | None = None
    ) -> int:
        """The number of a panel with this content."""
        rows = folded.rows
        said = (
            rows if not isinstance(content, Picture) else [_lines(word) for word in content.words]
        )
        panel = Panel(
            pane,
            content.name,
            content.subject,
            spans(content.right if drawn is None else ((SCALES[drawn.scale], "dim"),)),
            tuple(self.pool.row(row) for row in said),
            tuple(self.pool.refs.number(row.ref or row.selects) for row in rows),
            tuple(index for index, row in enumerate(rows) if row.key),
            content.still,
            max(0, len(content.rows) - MOST_ROWS),
            tuple(folded.when) if any(folded.when) else (),
            tuple(folded.folds) if max(folded.folds, default=-1) >= 0 else (),
            drawn,
        )
        number = self._numbers.setdefault(panel, len(self.panels))
        if number == len(self.panels):
            self.panels.append(panel)
            self.bytes += 60 + sum(map(size, vars(panel).values()))
        return number

    @staticmethod
    def _content(navigator: Navigator, pane: str, cells: int) -> Content:
        view = navigator.view
        if pane == "spine":
            return chrome.spine(view, cells)
        try:
            content = PANES[pane](view, cells)
            if isinstance(content, Picture):
                if len(content.rows) <= MOST_BLOCKS:
                    return content
                content = PANES["graph"](view, cells)
            return notes.marked(view, content, cells)
        except Exception as error:  # the other panes are still worth reading
            return Content(pane, rows=empty(cells, f"{type(error).__name__}: {error}"))

    # Pictures

    def _drawn(
        self, navigator: Navigator, picture: Picture | None, linked: bool
    ) -> Pictured | None:
        if picture is None:
            return None
        diagram, number = picture.diagram, self.pool.refs.number
        shows = tuple(
            tuple(map(number, refs_of(diagram, index))) for index in range(len(diagram.blocks))
        )
        key = (diagram, navigator.view.predicted)
        if linked and key not in self._nodes:
            self._nodes[key] = tuple(self._node(navigator, row) for row in picture.rows)
        nodes = self._nodes[key] if linked else ()
        return Pictured(drawn(picture), diagram.scale, shows, nodes)

    def _node(self, navigator: Navigator, row: Row) -> int:
        """The panel that describes a block."""
        led = copy_of(navigator)
        led.moved(row)
        graph = ARRANGEMENTS["graph"]
        cells = _cells(graph, graph.columns[-1])
        content = self._content(led, "node", cells)
        return self._panel("node", content, self._folded(led, "node", cells, content))

    @staticmethod
    def _is_module(picture: Picture, index: int) -> bool:
        """Whether a block is a module of a large graph, or is drawn because one was opened."""
        fold = picture.diagram.blocks[index].fold
        return fold is not None and fold.of == "module"

    def _zooms(self, navigator: Navigator) -> Iterator[str]:
        """The screens with the graph of this one at each scale, nothing opened."""
        base = navigator
        for scale in ZOOMS:

            def make(scale: int = scale) -> Navigator:
                led = copy_of(base)
                led.view.scale, led.view.unfolded = scale, set()
                return led

            key = self._drawn_key(navigator, scale, frozenset())
            self._ask(key, make)
            yield key

    @staticmethod
    def _drawn_key(navigator: Navigator, scale: int, unfolded: frozenset[str]) -> str:
        """The key of a screen with a picture, which is the same wherever it was opened from."""
        view = navigator.view
        graph = view.graph()
        words = (view.compile_id, graph.id if graph else "", str(scale), *sorted(unfolded))
        return f"graph|drawn|{'|'.join(words)}"

    def _unfolded(self, navigator: Navigator, target: RowTarget | None) -> frozenset[str]:
        """The folds of the picture that are open after a block is opened. Of folds that do not
        contain each other one is open at a time, so that their combinations need no screens."""
        open_now: frozenset[str] = drawn_folds(navigator.view.unfolded)
        if not isinstance(target, Fold):
            return open_now
        if target.key in open_now:
            return open_now - {target.key}
        around = open_now
        for key in sorted(open_now):
            if target.key in self._folds(navigator, around - {key}):
                around -= {key}
        return around | {target.key}

    def _folds(self, navigator: Navigator, unfolded: frozenset[str]) -> frozenset[str]:
        """The folds in sight where these are open."""
        view = navigator.view
        graph = view.graph()
        key = (graph.id if graph is not None else "", view.scale, view.predicted, unfolded)
        if key not in self._in_sight:
            found = diagram(replace(view, unfolded=set(unfolded)))
            blocks = found.blocks if found is not None else ()
            self._in_sight[key] = frozenset(block.fold for block in blocks if block.fold)
        return self._in_sight[key]

    def _led(self, navigator: Navigator, pane: str, row: Row, opened: bool) -> str:
        """The screen to which a row leads."""
        target: RowTarget | None = row.opens if opened else row.at
        base = navigator
        drawn = pane == "picture"
        unfolded = self._unfolded(navigator, target) if drawn else frozenset()

        def make() -> Navigator | None:
            led = copy_of(base)
            led.moved(row)
            if opened and not led.opened(row, pane):
                return None
            if drawn:
                led.view.unfolded = set(unfolded)
            return led

        view = navigator.view
        way = "open" if opened else "at"
        key = f"{navigator.arrangement}|{view.compile_id}|{way}|{target}"
        if drawn:
            key = self._drawn_key(navigator, view.scale, unfolded)
        elif isinstance(target, Fold):
            key += f"|{target.key in view.unfolded}"
        self._ask(key, make, last=drawn)
        return key


def _cells(arrangement: Arrangement | None = None, column: Column | None = None) -> int:
    """Cells to draw in: of a column, or of all columns together."""
    cells = CELLS - SPINE_CELLS
    if arrangement is not None and column is not None:
        cells = cells * column.share // sum(one.share for one in arrangement.columns)
    return cells - SCROLL_BAR
