"""One selection, in every pane."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace import refs
from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.provenance import Provenance
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tests.block_capture import FILE
from tests.block_trace import block_trace
from tests.no_torch.tui.conftest import Open
from tests.no_torch.tui.reader import select_line


async def test_a_line_lights_its_nodes_and_kernel_lines(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await select_line(reader, 19)
        graph, kernel = reader.pane("graph"), reader.pane("kernel")
        assert sorted(graph.lit.values()) == ["exact"] * 4 + ["inferred"] * 14
        assert kernel.content.subject == "k4 softmax"
        assert any(kernel.visible_row(i) for i, q in kernel.lit.items() if q == "exact")
        assert "4 + 14≈ lit" in reader.text()
        assert "18 nodes → 1 kernel k4 softmax" in reader.text()


def test_what_only_a_library_call_computes_shows_that_call() -> None:
    """Not the code of another kernel."""
    records = block_trace()
    recording = Recording(records)
    calls = [kernel for kernel in recording.kernels.values() if kernel.language == "aten"]
    assert calls
    for call in calls:
        view = View(Derived(recording, Provenance(records)), compile_id=compile_of(call.graph))
        Navigator(view).select(refs.node(call.graph, call.origins[-1]))
        lit = [kernel for kernel in view.kernels() if view.lit_lines(kernel)]
        assert call in lit
        shown = view.shown_kernel()
        assert shown in lit
        assert shown == call or (shown is not None and shown.text)


async def test_a_kernel_line_lights_its_source_line(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await select_line(reader, 19)
        await reader.press("4", "G")
        source = reader.pane("source")
        assert [source.rows[index].ref for index in source.lit] == [refs.source(FILE, 19)]
        assert set(source.lit.values()) == {"exact"}


async def test_a_node_lights_source_and_kernel(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await select_line(reader, 19)
        await reader.press("3", "slash")
        await reader.type("logical")
        await reader.press("enter")
        source = reader.pane("source")
        lines = {refs.split_source(source.rows[i].ref)[1]: q for i, q in source.lit.items()}
        assert lines == {18: "inferred", 19: "inferred"}
        assert "≈ block.py:18" in reader.text()


async def test_a_line_of_another_graph_brings_its_compile(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        await select_line(reader, 28)
        assert reader.bench.view.compile_id == "2/0"
        assert reader.pane("kernel").content.subject.endswith("gelu")


async def test_a_pane_does_not_scroll_while_a_counterpart_is_visible(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        await select_line(reader, 19)
        graph = reader.pane("graph")
        top = graph.top
        assert top > 0
        await reader.press("j")
        assert graph.top == top


async def test_a_pair_lights_the_lines_of_both_halves(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file, (200, 55)) as reader:
        await reader.press("1")
        await reader.go("fusion")
        pane = reader.pane("fusion")
        wanted = next(i for i, row in enumerate(pane.rows) if "amax,amax,any + exp,sum" in row.text)
        while pane.cursor != wanted:
            await reader.press("j" if pane.cursor < wanted else "k")
        source = reader.pane("source")
        assert {refs.split_source(source.rows[i].ref)[1] for i in source.lit} == {18, 19}
        assert "A and B were fused" in reader.text()
        assert reader.pane("loops-a").content.subject == "amax, amax, any"
