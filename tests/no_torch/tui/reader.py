"""Ways of a reader through the block's recording."""

from __future__ import annotations

from tcw.compiler.trace import refs
from tcw.workbench.tui.canvas import CanvasView
from tests.block_capture import FILE
from tests.no_torch.tui.conftest import Reader


def canvas(reader: Reader) -> CanvasView:
    """The picture of the graph."""
    pane = reader.pane("picture")
    assert isinstance(pane, CanvasView)
    return pane


def title_of_block(reader: Reader) -> str:
    """Of the block of the picture that is selected."""
    block = canvas(reader).block
    return block.title if block is not None else ""


async def softmax_block(reader: Reader) -> None:
    """Along the edges of the picture, from the input to the softmax."""
    await reader.go("graph")
    while title_of_block(reader) != "k4 softmax":
        await reader.press("j")


async def select_line(reader: Reader, line: int) -> None:
    """A line of the source, in its arrangement."""
    await reader.press("1")
    await reader.go("source")
    wanted = refs.source(FILE, line)
    await reader.until(lambda: wanted in reader.pane("source").content.refs)
    pane = reader.pane("source")
    pane.go(list(pane.content.refs).index(wanted))
    await reader.settle()


async def select_buffer(reader: Reader, name: str) -> None:
    """A row of the memory chart."""
    await reader.go("memory")
    pane = reader.pane("memory")
    pane.go(next(i for i, row in enumerate(pane.rows) if row.key == f"buffer:{name}"))
    await reader.settle()
