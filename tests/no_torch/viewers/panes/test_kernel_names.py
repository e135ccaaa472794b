"""One name a kernel, wherever it is shown."""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, Graph, Kernel, Node
from tcw.viewers.drawing.blocks import diagram
from tcw.viewers.panes import kernel
from tcw.viewers.panes.view import View
from tests.block_trace import block_trace
from tests.no_torch.viewers.panes.conftest import view_of


def test_graph_code_and_list_call_a_kernel_the_same(block: View) -> None:
    drawn = diagram(block)
    assert drawn is not None
    shown = [one for one in drawn.blocks if one.kernel and one.kind in ("group", "call")]
    blocks = Counter(one.kernel for one in shown)
    assert len(blocks) == 9
    listed = [row.text for row in kernel.kernel_list(block, 90).rows]
    for one in shown:
        made = block.recording.kernels[one.kernel]
        name = block.derived.called.name(made)
        assert name in one.title or blocks[one.kernel] > 1  # a block is a part of its kernel
        assert any(row.split()[:1] == [one.kernel] and f" {name} " in row for row in listed)
        block.kernel = one.kernel
        assert kernel.content(block, 200).subject == block.derived.called.title(made)


def test_kernels_of_one_name_are_told_apart_by_their_line() -> None:
    def copied(record: AnyRecord) -> AnyRecord:
        copies = isinstance(record, Kernel) and record.id in ("k0", "k6")
        return structs.replace(record, label="clone") if copies else record

    view = view_of([copied(one) for one in block_trace()])
    kernels = [view.recording.kernels[one] for one in ("k0", "k6", "k4")]
    titles = [view.derived.called.title(one) for one in kernels]
    assert titles == ["k0 copy :23", "k6 copy :20", "k4 softmax"]


def test_a_library_call_has_the_module_that_it_is_of() -> None:
    def bare(record: AnyRecord) -> AnyRecord:
        if isinstance(record, Graph) and record.kind == "lowered":
            return structs.replace(record, nodes=tuple(placed(node) for node in record.nodes))
        wanted = isinstance(record, Kernel) and record.language == "aten"
        return structs.replace(record, label=record.label.split(" ")[0]) if wanted else record

    def placed(node: Node) -> Node:
        modules = {"addmm": "layers.0.attn.qkv", "addmm_1": "layers.0.addmm"}
        return structs.replace(node, module=modules.get(node.name, ""))

    view = view_of([bare(one) for one in block_trace()])
    names = [view.derived.called.name(view.recording.kernels[one]) for one in ("k1", "k7", "k3")]
    assert names == ["addmm qkv", "addmm", "bmm"], "a module of the operation's name adds nothing"
