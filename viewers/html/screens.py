"""The parts of a page: its screens, and the panels on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tcw.viewers.html.drawn import Drawn
from tcw.viewers.html.pool import Spans


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
