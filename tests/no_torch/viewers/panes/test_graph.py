from __future__ import annotations

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import AnyRecord, Graph, Location, Node, TensorMeta
from tcw.viewers.panes import node_list
from tcw.viewers.panes.view import View
from tests.block_capture import FILE
from tests.no_torch.viewers.panes.conftest import view_of


def test_views_and_inputs_are_folded(block: View) -> None:
    rows = list(node_list.content(block, 60).rows)
    assert rows[0].text.split() == ["▸", "7", "inputs"]
    assert "2 views  getitem" in rows[2].text
    block.unfolded.add(rows[2].key)
    opened = list(node_list.content(block, 60).rows)
    assert len(opened) == len(rows) + 2
    assert opened[3].text.split()[:2] == ["23", "getitem"]


def test_a_closed_fold_lights_up_for_what_is_in_it(block: View) -> None:
    block.select(refs.node("0/0/forward/lowered", "permute_1"))
    block.lit["fx:0/0/forward/lowered/select"] = "exact"
    content = node_list.content(block, 60)
    lit = [
        row.text for row, ref in zip(content.rows, content.refs, strict=True) if ref in block.lit
    ]
    assert len(lit) == 1
    assert "8 views" in lit[0]


def test_the_kind_of_graph_can_be_chosen(block: View) -> None:
    assert node_list.content(block, 60).subject == "0/0 lowered"
    block.variant = "captured"
    content = node_list.content(block, 60)
    assert content.subject == "0/0 captured"
    assert any("layer_norm" in row.text for row in content.rows)


def large(count: int) -> list[AnyRecord]:
    value = TensorMeta(shape=(4, 128), dtype="float32", bytes=2048)
    nodes = tuple(
        Node(
            name=f"add_{index}",
            op="call_function",
            target="aten.add.Tensor",
            value=value,
            module=f"layers.{index // 100}.mlp",
            location=Location(file=FILE, line=3),
        )
        for index in range(count)
    )
    return [Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes, ops=count)]


def test_a_large_graph_opens_as_its_modules_and_stays_lazy() -> None:
    view = view_of(large(50_000))
    content = node_list.content(view, 60)
    assert len(content.rows) == 500
    assert content.rows[0].text.split() == ["▸", "layers.0", "100", "ops"]
    view.unfolded = {row.key for row in content.rows}
    opened = node_list.content(view, 60)
    assert len(opened.rows) == 50_500
    assert opened.rows._make.cache_info().currsize == 0  # type: ignore[attr-defined]
