"""Writes the current graph to a file: SVG, PNG or DOT."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from tcw.compiler.trace.output_file import safe_name, write
from tcw.compiler.trace.output_file import words as words_of_error
from tcw.viewers.drawing.blocks import diagram
from tcw.viewers.drawing.diagram import Diagram
from tcw.viewers.drawing.dot import MOST, dot, laid_out
from tcw.viewers.drawing.layout import DrawnBlocks, lay_out
from tcw.viewers.drawing.svg import svg
from tcw.viewers.panes.picture import sizes_of, words_of
from tcw.viewers.panes.view import View

Format = Literal["svg", "png", "dot"]
FORMATS: tuple[Format, ...] = get_args(Format)


class ExportError(Exception):
    """Nothing was written; the message says why and what to do."""


def suggested(view: View) -> str:
    """A name for the file: `0-0-forward-lowered.svg`."""
    graph = view.graph()
    name = graph.id if graph is not None else "graph"
    return f"{safe_name(name, 'graph', gap='-')}.svg"


def export(view: View, path: Path, form: Format, own: bool = False) -> str:
    """Write the current drawing of the graph to `path`, a new file; returns what was written, in
    words.

    SVG and PNG are laid out by Graphviz where its `dot` is installed and the graph is not too
    large for it, else (and with `own`) as on the screen. Raises `ExportError`.
    """
    drawn = diagram(view)
    if drawn is None or not drawn.blocks:
        raise ExportError("there is no graph here to export")
    words = [words_of(block) for block in drawn.blocks]
    source = dot(drawn, words)
    by = "Graphviz"
    found: bytes | None
    if form == "dot":
        found = source.encode()
    else:
        found = None if own or len(drawn.blocks) > MOST else laid_out(source, form)
        if found is None:
            by = "tcw"
            layout = lay_out(sizes_of(words), drawn.edges)
            found = svg(drawn, layout, words).encode() if form == "svg" else None
            found = found or _png(drawn, layout, words)
    try:
        write(path, found)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {words_of_error(error)}") from error
    how = "" if form == "dot" else f", laid out by {by}"
    return f"{path}: {len(drawn.blocks):,} blocks{how}"


def _png(drawn: Diagram, layout: DrawnBlocks, words: list[tuple[str, ...]]) -> bytes:
    """Pillow is imported only here: nothing else needs it."""
    try:
        from tcw.viewers.drawing.png import PictureTooLarge, png
    except ImportError as error:
        raise ExportError("PNG needs Pillow: pip install pillow") from error
    try:
        return png(drawn, layout, words)
    except PictureTooLarge as error:
        why = f"too large for a PNG ({error}): export it as SVG, or fold some of its groups"
        raise ExportError(why) from error
