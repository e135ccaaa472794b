"""The graph as a picture: what its blocks say, and where the reader is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len

from tcw.compiler.trace import refs
from tcw.compiler.trace.provenance import Quality
from tcw.compiler.trace.refs import Ref
from tcw.viewers.drawing.blocks import KEPT, SCALES, diagram
from tcw.viewers.drawing.diagram import Block, Diagram
from tcw.viewers.drawing.layout import DrawnBlocks, lay_out
from tcw.viewers.kit.cells import cut, pad
from tcw.viewers.kit.spans import Line
from tcw.viewers.panes import node_list
from tcw.viewers.panes.profile_source import kernel_seconds
from tcw.viewers.panes.rows import Content, Row, Rows, text_row
from tcw.viewers.panes.targets import Fold, ToBlock, ToThing
from tcw.viewers.panes.view import View, variant_of
from tcw.viewers.plain import plain
from tcw.viewers.words import seconds_text

WIDEST = 44
"""Width of a block in cells; longer words are cut."""


@dataclass(frozen=True, kw_only=True)
class Picture(Content):
    """A content whose rows are the blocks of a diagram."""

    diagram: Diagram
    words: list[tuple[str, ...]]
    """Of each block: its lines, plain and as wide as the block."""

    def lay_out(self) -> DrawnBlocks:
        return lay_out(sizes_of(self.words), self.diagram.edges)

    def lit(self, lit: dict[Ref, Quality]) -> dict[int, Quality]:
        """Which blocks hold counterparts: found by their nodes, since only part of a kernel may be
        one."""
        found: dict[int, Quality] = {}
        prefix = refs.node(self.diagram.graph.id, "")
        for ref, quality in lit.items():
            if ref.startswith(prefix):
                number = self.diagram.of_node.get(ref[len(prefix) :])
                if number is not None and found.get(number) != "exact":
                    found[number] = quality
        return found

    def find(self, words: str, start: int, step: int) -> int:
        """The next block that contains `words` or a node of that name; -1 for none."""
        blocks, nodes = self.diagram.blocks, self.diagram.graph.nodes
        wanted = words.casefold()
        for offset in range(len(blocks)):
            index = (start + step * offset) % len(blocks)
            block = blocks[index]
            said = (block.title, *block.lines, *(nodes[i].name for i in block.nodes))
            if any(wanted in one.casefold() for one in said):
                return index
        return -1


def content(view: View, width: int) -> Content:
    """The picture; the list of nodes if the reader asked for it, or there is nothing to draw."""
    drawn = None if view.listed else diagram(view)
    if drawn is None or not drawn.blocks:
        return node_list.content(view, width)
    seconds = (
        kernel_seconds(view, block.kernel) if block.kind in ("group", "call") else None
        for block in drawn.blocks
    )
    return _picture(
        drawn, tuple("" if second is None else seconds_text(second) for second in seconds)
    )


@lru_cache(maxsize=KEPT)
def _picture(drawn: Diagram, times: tuple[str, ...]) -> Picture:
    """`times`: beside the title of each block whose kernel was timed."""
    blocks = drawn.blocks

    def make(index: int) -> Row:
        block = blocks[index]
        return text_row(
            " ".join((block.title, *block.lines)),
            at=ToBlock(block.key),
            opens=Fold(block.fold) if block.fold else ToThing(drawn.ref(index)),
            selects=drawn.ref(index),
            copies=_copied(drawn, block),
        )

    zoom: Line = ((f"{SCALES[drawn.scale]} · zoom {drawn.scale + 1} of {len(SCALES)}", "dim"),)
    return Picture(
        "graph",
        f"{drawn.graph.compile_id} {variant_of(drawn.graph)}",
        zoom,
        Rows(len(blocks), make, [""] * len(blocks)),
        str(ToBlock(blocks[0].key)),
        diagram=drawn,
        words=[words_of(block, time) for block, time in zip(blocks, times, strict=True)],
    )


def _copied(drawn: Diagram, block: Block) -> str:
    nodes = (drawn.graph.nodes[index] for index in block.nodes)
    return "\n".join(f"{node.name} = {node.target}({node.args})" for node in nodes)


def words_of(block: Block, time: str = "") -> tuple[str, ...]:
    """A block's lines, a blank at either side, all equally wide."""
    said = (plain(line[: 2 * WIDEST]) for line in (block.title, *block.lines))
    lines = [cut(line, WIDEST - 2) for line in said]
    if time:
        lines[0] = f"{cut(lines[0], WIDEST - 4 - cell_len(time))}  {time}"
    width = max(3, *(cell_len(line) for line in lines))
    return tuple(" " + pad(line, width) + " " for line in lines)


def sizes_of(words: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Of each block: cells across, rows."""
    return [(cell_len(lines[0]), len(lines)) for lines in words]
