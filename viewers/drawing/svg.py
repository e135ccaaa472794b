"""A layout as a standalone SVG: no script, no font and nothing else is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from rich.cells import cell_len

from tcw.viewers.drawing.diagram import Diagram
from tcw.viewers.drawing.layout import Down, DrawnBlocks, Line
from tcw.viewers.kit.colours import LIGHT, fill_of
from tcw.viewers.plain import plain

CELL_WIDTH, CELL_HEIGHT = 9, 18
"""Pixels of a cell."""
MARGIN = 18
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
NOTE = 400
"""Characters of a block's tooltip."""


def svg(drawn: Diagram, layout: DrawnBlocks, words: Sequence[Sequence[str]]) -> str:
    """The drawing; `words` are the lines of each block, plain."""
    ground, edge, ink, quiet = (
        LIGHT[name] for name in ("background", "dim", "text", "dim-on-fill")
    )
    width, height = pixels_of(layout)
    title = f"{plain(drawn.graph.id)}: {drawn.words}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family={quoteattr(FONT)} font-size="14">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="{ground}"/>',
        f'<g fill="none" stroke="{edge}" stroke-linecap="round">',
        *(_line(line) for line in dict.fromkeys(layout.lines())),
        "</g>",
    ]
    for number, box in enumerate(layout.boxes):
        block = drawn.blocks[number]
        x, y = MARGIN + box.x * CELL_WIDTH, MARGIN + box.y * CELL_HEIGHT
        fill = LIGHT[fill_of(block.hue)]
        parts.append(f"<g><title>{escape(_note(drawn, number))}</title>")
        parts.append(
            f'<rect x="{x}" y="{y}" width="{box.width * CELL_WIDTH}" '
            f'height="{box.height * CELL_HEIGHT}" rx="3" fill="{fill}"/>'
        )
        for row, line in enumerate(words[number]):
            said = line.strip()
            if not said:
                continue
            look = f'fill="{quiet}"' if row else f'fill="{ink}" font-weight="bold"'
            length = cell_len(said) * CELL_WIDTH
            parts.append(
                f'<text x="{x + CELL_WIDTH}" y="{y + row * CELL_HEIGHT + 13}" {look} '
                f'textLength="{length}" lengthAdjust="spacingAndGlyphs">{escape(said)}</text>'
            )
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def pixels_of(layout: DrawnBlocks) -> tuple[int, int]:
    """Width and height."""
    return layout.width * CELL_WIDTH + 2 * MARGIN, layout.height * CELL_HEIGHT + 2 * MARGIN


def ends_of(line: Line) -> tuple[int, int, int, int]:
    """x and y of both ends, in pixels."""
    half, middle = CELL_HEIGHT // 2, MARGIN + CELL_WIDTH // 2
    if isinstance(line, Down):
        x = middle + line.x * CELL_WIDTH
        return x, MARGIN + line.top * half, x, MARGIN + line.bottom * half
    y = MARGIN + line.y * CELL_HEIGHT + half
    return middle + line.left * CELL_WIDTH, y, middle + line.right * CELL_WIDTH, y


def _line(line: Line) -> str:
    x, y, right, bottom = ends_of(line)
    way = f"V{bottom}" if isinstance(line, Down) else f"h{right - x}"
    return f'<path d="M{x} {y}{way}"/>'


def _note(drawn: Diagram, number: int) -> str:
    """The names of the nodes in a block."""
    names = ", ".join(drawn.graph.nodes[i].name[:NOTE] for i in drawn.blocks[number].nodes[:40])
    said = plain(names[:NOTE])
    return said if len(names) <= NOTE and len(drawn.blocks[number].nodes) <= 40 else f"{said} …"
