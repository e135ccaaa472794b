"""The picture of the graph on the screen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from benchmarks.traces import large_graph
from tcw.compiler.trace.records import AnyRecord, End, Graph, Node
from tests.block_trace import Builder, opening
from tests.no_torch.tui.conftest import Open, encoded
from tests.no_torch.tui.reader import canvas, softmax_block, title_of_block

WIDE = (120, 40)


async def test_a_group_opens_to_its_operations_and_closes_again(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file, WIDE) as reader:
        await softmax_block(reader)
        before = len(canvas(reader).rows)
        await reader.press("enter")
        assert len(canvas(reader).rows) > before + 10
        assert title_of_block(reader).startswith("reshape")
        await reader.press("enter")
        assert len(canvas(reader).rows) == before
        assert title_of_block(reader) == "k4 softmax"


async def test_zoom_shows_operations_then_shapes(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file, WIDE) as reader:
        await softmax_block(reader)
        groups = len(canvas(reader).rows)
        await reader.press("plus")
        ops = len(canvas(reader).rows)
        assert ops > 3 * groups
        assert "zoom 2 of 3" in reader.text()
        await reader.press("plus", "plus")
        assert "zoom 3 of 3" in reader.text()
        assert "f32 4×8×128×128" in reader.text()
        await reader.press("minus", "minus", "minus")
        assert len(canvas(reader).rows) == groups


async def test_weights_are_hidden_until_they_are_asked_for(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file, WIDE) as reader:
        await reader.go("graph")
        assert "weights hidden" in reader.text()
        assert "ln1.weight" not in reader.text()
        await reader.press("I")
        assert "ln1.weight  256" in reader.text()
        assert "weights hidden" not in reader.text()


async def test_of_several_readers_one_is_chosen(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file, WIDE) as reader:
        await reader.go("graph")
        await reader.press("j", "j")
        assert title_of_block(reader) == "addmm qkv"
        await reader.press("j")
        assert "reader 2 of 3" in reader.text()
        seen = {title_of_block(reader)}
        for _ in range(2):
            await reader.press("l")
            seen.add(title_of_block(reader))
        assert seen == {"k2 v copy", "k2 k copy", "k2 q copy"}
        await reader.press("k")
        assert title_of_block(reader) == "addmm qkv"
        await reader.press("g", "g")
        await reader.press("k")
        assert "it reads nothing that is drawn" in reader.text()


async def test_a_selection_lights_the_other_panes_and_is_lit_by_them(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file, WIDE) as reader:
        await softmax_block(reader)
        assert reader.bench.view.ref == "k:k4"
        await reader.go("source")
        assert reader.pane("source").lit
        while not reader.bench.view.ref.endswith(":20"):
            await reader.press("j")
        await reader.go("graph")
        pane = canvas(reader)
        assert pane.drawn is not None
        lit = {pane.drawn.diagram.blocks[n].title for n in pane.lit}
        assert "addmm proj" in lit
        assert "k0 layer norm" not in lit


async def test_arrows_pan_and_a_picture_with_room_stands_in_the_middle(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file, (80, 24)) as reader:
        await reader.go("graph")
        pane = canvas(reader)
        cursor, left = pane.cursor, pane.left
        assert left < 0
        await reader.press("down", "down")
        assert pane.top == 6
        await reader.press("right")
        assert (pane.cursor, pane.left) == (cursor, left)
        await reader.press("up", "up", "up")
        assert pane.top == 0


async def test_the_list_form_stays(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file, WIDE) as reader:
        await reader.go("graph")
        await reader.press("o")
        assert "var_mean" in reader.text()
        assert "2 views  getitem" in reader.text()
        await reader.press("j", "j")
        assert reader.bench.view.ref.startswith("fx:")
        await reader.press("o")
        assert "k0 layer norm" in reader.text()


async def test_search_finds_a_node_inside_a_group(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file, WIDE) as reader:
        await reader.go("graph")
        await reader.press("/")
        await reader.type("amax_default_1")
        await reader.press("enter")
        assert title_of_block(reader) == "k4 softmax"


async def test_a_click_selects_and_a_drag_pans(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file, (80, 24)) as reader:
        await reader.go("graph")
        pane = canvas(reader)
        assert pane.drawing is not None
        box = pane.drawing.boxes[2]
        await reader.pilot.click(pane, offset=(box.x - pane.left + 2, box.y - pane.top + 1))
        await reader.settle()
        assert pane.cursor == 2
        await reader.pilot.mouse_down(pane, offset=(4, 10))
        await reader.pilot.hover(pane, offset=(4, 6))
        await reader.pilot.mouse_up(pane, offset=(4, 6))
        assert pane._grip is None


def trace_of(graph: Graph) -> list[AnyRecord]:
    out = Builder()
    opening(out)
    out.add(graph)
    out.add(End(status="ok", seconds=1.0, lines=len(out.records), exit_code=0))
    return out.records


async def test_a_large_graph_opens_by_module_and_can_be_drawn_whole(
    open_trace: Open, tmp_path: Path
) -> None:
    path = tmp_path / "large.tcw"
    path.write_bytes(encoded(trace_of(large_graph(1200))))
    async with open_trace(path, WIDE) as reader:
        reader.bench.view.compile_id = "0/0"
        await reader.go("graph")
        pane = canvas(reader)
        assert len(pane.rows) < 300
        assert "layers.1" in reader.text()
        await reader.press("A")
        await reader.until(lambda: pane.drawing is not None and len(pane.drawing.boxes) > 1000)
        await reader.press("j", "j", "down")
        assert reader.cells() == [WIDE[0]] * WIDE[1]


async def test_x_exports_what_is_drawn(
    open_trace: Open, block_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if not shutil.which("dot"):
        pytest.skip("Graphviz is not installed")
    async with open_trace(block_file, WIDE) as reader:
        await reader.go("graph")
        await reader.press("x", "enter")
        file = tmp_path / "0-0-forward-lowered.svg"
        await reader.until(lambda: "12 blocks" in reader.text())
        assert "k4 softmax" in file.read_text()
        await reader.press("x", "enter")
        assert "already exists" in reader.text()


@pytest.mark.parametrize("name", ["link.svg", "dangling.svg", "model.svg", "pipe.svg"])
async def test_x_saves_a_picture_of_the_screen_in_a_new_file_alone(
    name: str,
    open_trace: Open,
    block_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.svg").write_text("mine")
    Path("link.svg").symlink_to("model.svg")
    Path("dangling.svg").symlink_to("made")
    os.mkfifo("pipe.svg")
    async with open_trace(block_file, WIDE) as reader:
        for typed in (name, "~nobody-of-this-name.svg"):
            await reader.press("x", "ctrl+u")
            await reader.type(typed)
            await reader.press("enter")
            why = "it already exists" if name == "model.svg" else "it is "
            assert (f"{name}: {why}" in reader.text()) is (typed == name)
    assert Path("model.svg").read_text() == "mine"
    assert "</svg>" in Path("~nobody-of-this-name.svg").read_text()
    assert not Path("made").exists()


HOSTILE = (
    "a" * 10_000,
    '"); </svg><script>alert(1)</script>',
    "[red]markup[/red]\n\r\t\x1b[31m\x1b]0;title\x07",
    "\u202ereversed 表表表表 \U0001f600",
    "",
)


async def test_hostile_names_do_not_steer_the_terminal(open_trace: Open, tmp_path: Path) -> None:
    names = [name or "empty" for name in HOSTILE]
    nodes = tuple(
        Node(
            name=name,
            op="call_function" if at else "placeholder",
            target=f"aten.{name}.default",
            inputs=tuple(names[max(0, at - 2) : at]),
            module=f"layers.{name}",
        )
        for at, name in enumerate(names)
    )
    graph = Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes, ops=4)
    path = tmp_path / "hostile.tcw"
    path.write_bytes(encoded(trace_of(graph)))
    async with open_trace(path, WIDE) as reader:
        reader.bench.view.compile_id = "0/0"
        await reader.go("graph")
        for key in ("j", "j", "plus", "plus", "o", "o", "right"):
            await reader.press(key)
            assert reader.cells() == [WIDE[0]] * WIDE[1]
            assert not [line for line in reader.lines() if not line.isprintable()]
