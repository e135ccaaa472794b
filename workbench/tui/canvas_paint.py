"""The cells of a drawn graph: its blocks in their colours, its edges, the path under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from tcw.viewers.drawing.cells import CellRun, row
from tcw.viewers.drawing.layout import DrawnBlocks, Line
from tcw.viewers.kit.colours import fill_of
from tcw.viewers.kit.spans import Span, clip
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.picture import Picture
from tcw.workbench.tui.paint import harmless


@dataclass(frozen=True, slots=True)
class CanvasPaint:
    """How a picture looks at this moment."""

    theme: Theme
    picture: Picture
    layout: DrawnBlocks
    path: Sequence[Line]
    """Edges in the colour of the cursor."""
    tint_of: Callable[[int], Tint]
    """Of a block, by its number."""
    needle: str
    """What is searched for: rows of blocks that have it stand out."""

    def cells(self, y: int, left: int, width: int) -> list[Segment]:
        """A row of the picture, from a column on."""
        blank = self.theme.base("")
        edge = blank + self.theme.style("faint")
        path = blank + self.theme.style("accent")
        segments: list[Segment] = []
        at, end = left, left + width
        for run in row(self.layout, y, left, end, self.path):
            if run.x > at:
                segments.append(Segment(" " * (run.x - at), blank))
                at = run.x
            if run.what != "block":
                segments.append(Segment(run.words, path if run.what == "path" else edge))
                at += 1
                continue
            for words, style in self._words(run):
                low, high = max(0, left - run.x), min(run.width, end - run.x)
                segments.extend(
                    Segment(part, style)
                    for part, _ in clip(harmless(((words, "text"),)), low, high - low)
                )
            at = min(end, run.x + run.width)
        return segments

    def _words(self, run: CellRun) -> list[tuple[str, Style]]:
        """A row of a block, in its colours."""
        block = self.picture.diagram.blocks[run.block]
        words = self.picture.words[run.block][run.line]
        tint = self.tint_of(run.block)
        theme = self.theme
        style = theme.base(tint)
        if not tint:
            style += theme.style(fill_of(block.hue))
        elif tint == "inferred":
            style += theme.style(fill_of(block.hue)) if theme.name != "mono" else Style()
        if run.line == 0 and block.kind != "op":
            style += Style(bold=True)
        elif run.line:
            if tint == "exact":
                style += theme.style("dim", tint)
            elif tint != "selected":
                style += theme.quiet_on_fill
        if self.needle and self.needle.casefold() in words.casefold():
            style += theme.style("hit")
        if tint in ("selected", "exact", "inferred") or theme.name == "mono":
            bar: Span = ("▌" if tint in ("selected", "exact") else "≈" if tint else "▏", "accent")
            accent = theme.style("accent") if theme.name != "mono" else Style()
            return [(bar[0], style + accent), (words[1:], style)]
        return [(words, style)]
