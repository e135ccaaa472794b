"""The picture of a graph in the page: the places of its blocks, their lines and refs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tcw.compiler.trace import refs
from tcw.compiler.trace.refs import Ref
from tcw.viewers.drawing.diagram import Diagram
from tcw.viewers.drawing.layout import Down, Line, lay_out
from tcw.viewers.html.pool import ROLES, Spans
from tcw.viewers.kit.colours import fill_of
from tcw.viewers.panes.picture import Picture, sizes_of

MOST_BLOCKS = 1200
"""Maximum number of nodes of a picture; a larger graph is a list."""


class Drawn(NamedTuple):
    """A picture in cells. Vertical places of lines are counted in half cells."""

    width: int
    height: int
    boxes: tuple[tuple[int, int, int, int, int], ...]
    """Column, row, cells across, rows and role of each block."""
    edges: tuple[tuple[int, ...], ...]
    """Block, the block that reads it, the column and half row where the line starts, then half rows
    down, cells to the right, half rows down, …; no line for an edge that is too long to draw."""


@lru_cache(maxsize=64)
def _laid_out(diagram: Diagram, words: tuple[tuple[str, ...], ...]) -> Drawn:
    layout = lay_out(sizes_of(words), diagram.edges)
    boxes = tuple(
        (box.x, box.y, box.width, box.height, ROLES.index(fill_of(block.hue)))
        for box, block in zip(layout.boxes, diagram.blocks, strict=True)
    )
    edges = tuple((*edge, *_way(layout.route(*edge))) for edge in diagram.edges)
    return Drawn(layout.width, layout.height, boxes, edges)


def drawn(picture: Picture) -> Drawn:
    return _laid_out(picture.diagram, tuple(picture.words))


def _way(route: Sequence[Line]) -> tuple[int, ...]:
    """A route as moves, down and across in turn, from one vertical line to the next."""
    downs = [line for line in route if isinstance(line, Down)]
    if not downs:
        return ()
    x, y = downs[0].x, downs[0].top
    found = [x, y, 0]
    for line in downs:
        if line.x != x:
            found += [line.x - x, 0]
            x = line.x
        found[-1] += line.bottom - y
        y = line.bottom
    return tuple(found)


def refs_of(diagram: Diagram, number: int) -> list[Ref]:
    """The refs of a block, its own first: each of them highlights it."""
    nodes = (diagram.graph.nodes[index].name for index in diagram.blocks[number].nodes)
    found = [diagram.ref(number), *(refs.node(diagram.graph.id, name) for name in nodes)]
    return list(dict.fromkeys(found))


class Pictured(NamedTuple):
    """A picture on a panel."""

    drawn: Drawn
    scale: int
    """How much of the graph it shows."""
    shows: tuple[tuple[int, ...], ...]
    """The refs of each block, its own first."""
    nodes: tuple[int, ...]
    """The panels that describe each block; empty if there are none."""


@dataclass(frozen=True)
class Panel:
    """What a pane shows. `rows` and `refs` are numbers of the pool, one of each a row."""

    pane: str
    name: str
    subject: str
    right: Spans
    rows: tuple[int, ...]
    refs: tuple[int, ...]
    keyed: tuple[int, ...]
    """Indexes of the rows that can be selected."""
    still: bool
    """Show it from its beginning: it never scrolls by itself."""
    left_out: int
    """Rows that the trace has and the document does not."""
    when: tuple[int, ...] = ()
    """The condition of each row (`Conditions`); empty if all are always seen."""
    folds: tuple[int, ...] = ()
    """The fold that each row opens and closes; empty if there is none."""
    picture: Pictured | None = None
    """The rows are the blocks of this picture."""


@dataclass
class PanelPlace:
    """A panel on a screen."""

    panel: int
    start: int
    """Index of the row on which the cursor starts; -1 for none."""
    moves: dict[int, str] = field(default_factory=dict)
    """Row -> the screen that selecting it leads to."""
    opens: dict[int, str] = field(default_factory=dict)


@dataclass
class Screen:
    arrangement: str
    compile_id: str
    header: Spans
    bar: tuple[int, ...]
    """Its rows, by their numbers."""
    places: tuple[PanelPlace, ...]
    """The spine, the top one if the arrangement has one, and the slots of each column."""
    lit: dict[int, bool]
    """Ref -> whether its link is exact."""
