"""Bytes and FLOPs of ATen calls: counted by hand, and by torch's FlopCounterMode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tcw.compiler.autograd import HOOKS as AUTOGRAD
from tcw.compiler.capture import HOOKS
from tcw.compiler.graphs.tensors import tensor_meta
from tcw.compiler.measure.probes.eager_probe import Described, EagerProbe
from tcw.compiler.measure.work.operations import (
    NOTHING,
    Work,
    operation_named,
    stored_bytes,
    values_of,
    work_of,
    work_of_node,
)
from tcw.compiler.trace.records import Graph, Node, TensorMeta
from tests.cpu.recorded import record

aten = torch.ops.aten
x, y, b = torch.randn(4, 8), torch.randn(8, 16), torch.randn(16)
table, rows = torch.randn(100, 4), torch.tensor([1, 2])
query, key = torch.randn(2, 4, 8, 16), torch.randn(2, 2, 8, 16)
image, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)


def called(function: Any, *args: Any, **kwargs: Any) -> Work:
    """The work of an actual call."""
    described = Described()
    given, named = described(args), described(kwargs)
    result = function(*args, **kwargs)
    results = result if isinstance(result, (list, tuple)) else [result]
    return work_of(function, given, named, [tensor_meta(one) for one in results])


CASES: list[tuple[Work, Callable[[], Work]]] = [
    # products: both factors read, 2 m k n
    (Work(4 * (32 + 128), 4 * 64, 2 * 4 * 8 * 16), lambda: called(aten.mm.default, x, y)),
    (Work(4 * (16 + 32 + 128), 4 * 64, 1024), lambda: called(aten.addmm.default, b, x, y)),
    (
        Work(4 * (16 + 32 + 128), 4 * 64, 1024),  # what out= holds is not read
        lambda: called(aten.addmm.out, b, x, y, out=torch.empty(4, 16)),
    ),
    (Work(4 * (32 + 8), 4 * 4, 2 * 32), lambda: called(aten.mv.default, x, torch.randn(8))),
    (Work(4 * 16, 4, 2 * 16), lambda: called(aten.dot.default, b, b)),
    # pointwise: one FLOP an element of the result; one tensor given twice is read once
    (Work(4 * 32, 4 * 32, 32), lambda: called(aten.add.Tensor, x, x)),
    (Work(4 * 40, 4 * 32, 32), lambda: called(aten.add.Tensor, x, torch.randn(1, 8))),
    (Work(4 * 40, 4 * 32, 32), lambda: called(aten.add.Tensor, x, y[0, :8].expand(4, 8))),
    (Work(4 * 32, 4 * 32, 32), lambda: called(aten.add_.Tensor, x.clone(), 1)),
    (Work(4 * 8, 4 * 8, 8), lambda: called(aten.neg.default, x[:, ::4])),
    (Work(4 * 160, 4 * 160, 160), lambda: called(aten._foreach_add_.Scalar, [x + 0, y + 0], 1)),
    # views and allocations move nothing
    (NOTHING, lambda: called(aten.view.default, x, [32])),
    (NOTHING, lambda: called(aten.t.default, x)),
    (NOTHING, lambda: called(aten.split.Tensor, x, 2)),
    (NOTHING, lambda: called(aten._unsafe_view.default, x, [32])),
    (NOTHING, lambda: called(aten.empty.memory_format, [3])),
    (NOTHING, lambda: called(aten.t_.default, x.clone())),
    # data that moves is no FLOP; what is overwritten whole is not read
    (Work(4 * 32, 4 * 32, 0), lambda: called(aten.clone.default, x)),
    (Work(4 * 32, 4 * 32, 0), lambda: called(aten.copy_.default, x.clone(), x)),
    (Work(0, 4 * 32, 0), lambda: called(aten.fill_.Scalar, x.clone(), 0.0)),
    (Work(0, 4 * 12, 0), lambda: called(aten.zeros.default, [3, 4])),
    (Work(4 * 64, 4 * 64, 0), lambda: called(aten.cat.default, [x, x + 1])),
    (Work(4 * 32, 2 * 32, 0), lambda: called(aten._to_copy.default, x, dtype=torch.half)),
    (Work(4, 0, 0), lambda: called(aten._local_scalar_dense.default, b[0])),
    # gathered: the rows and their indices
    (Work(4 * 8 + 16, 4 * 8, 0), lambda: called(aten.embedding.default, table, rows)),
    (Work(4 * 8 + 16, 4 * 8, 0), lambda: called(aten.index.Tensor, table, [rows])),
    (Work(4 * 400 + 8 * 500, 4 * 2000, 0), lambda: called(aten.embedding.default, table, LONG)),
    # put in place: those rows, read where something is added to them
    (Work(4 * 8 + 16, 4 * 8, 0), lambda: put(False)),
    (Work(4 * 8 + 16 + 4 * 8, 4 * 8, 8), lambda: put(True)),
    (
        Work(4 * 400 + 4 * 8 + 16, 4 * 400, 0),
        lambda: called(aten.index_put.default, table, [rows], torch.randn(2, 4)),
    ),
    (
        Work(64 + 32 + 32, 32, 8),
        lambda: called(aten.scatter_add_.default, table.clone(), 0, INDEX, torch.randn(2, 4)),
    ),
    (
        Work(16 + 32 + 32, 32, 8),
        lambda: called(aten.index_add_.default, table.clone(), 0, rows, torch.randn(2, 4)),
    ),
    # reductions, normalisations and softmax: one FLOP an element of the input
    (Work(4 * 32, 4 * 4, 32), lambda: called(aten.sum.dim_IntList, x, [1])),
    (Work(4 * 32, 4 * 32, 32), lambda: called(aten._softmax.default, x, -1, False)),
    (
        Work(4 * 32, 4 * (32 + 4 + 4), 32),
        lambda: called(aten.native_layer_norm.default, x, [8], None, None, 1e-5),
    ),
    # convolution and attention by torch's formulas; heads that share keys do the same products
    (
        Work(4 * (image.numel() + weight.numel()), 4 * 512, 2 * 512 * 27),
        lambda: called(
            aten.convolution.default,
            *(image, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        ),
    ),
    (
        Work(4 * (1024 + 512), 4 * (1024 + 64), 2 * (2 * 2 * 4 * 8 * 8 * 16)),
        lambda: called(aten._scaled_dot_product_flash_attention_for_cpu.default, query, key, key),
    ),
    # random numbers
    (Work(0, 4 * 32, 32), lambda: called(aten.bernoulli_.float, x.clone(), 0.5)),
    (Work(4 * 32, 5 * 32, 32), lambda: called(aten.native_dropout.default, x, 0.5, True)),
    # what no rule knows
    (Work(4 * 32, 12 * 8, None), lambda: called(aten.topk.default, x, 2)),
    (Work(None, None, 9), lambda: called(aten.neg.default, torch.eye(3).to_sparse())),
]
LONG = torch.arange(500) % 100
INDEX = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])


def put(accumulate: bool) -> Work:
    target = table.clone()
    return called(aten.index_put_.default, target, [rows], torch.randn(2, 4), accumulate)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_counted_by_hand(number: int) -> None:
    expected, found = CASES[number]
    assert found() == expected


def test_overlapping_windows_hold_no_more_than_their_extent() -> None:
    meta = tensor_meta(torch.arange(10.0).unfold(0, 4, 1))
    assert meta is not None
    assert meta.bytes == 4 * 28
    assert stored_bytes(meta) == 4 * 10


def test_a_symbolic_size_is_unknown() -> None:
    meta = TensorMeta(shape=("s0", 4), dtype="float32", stride=(4, 1))
    assert work_of(aten.sin.default, [meta], {}, [meta]) == Work(None, None, None)


def test_names_lead_to_operations() -> None:
    assert operation_named("aten.addmm.default") is aten.addmm.default
    assert operation_named("extern_kernels.addmm") is aten.addmm.default
    assert operation_named("torch.ops.aten.sum.dim_IntList") is aten.sum.dim_IntList
    for unknown in ("relu", "aten.nothing", "nowhere.at.all", "extern_kernels.", "a.b.c.d"):
        assert operation_named(unknown) is None


class Convolves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, stride=2, groups=1)
        self.second = nn.Conv2d(4, 4, 3, groups=4, padding=1)
        self.head = nn.Linear(4, 8)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.second(self.first(image)).mean((2, 3)))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "convolutions": (Convolves, lambda: torch.randn(2, 3, 9, 9)),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True),
        lambda: torch.randn(2, 5, 16),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_products_are_counted_as_torch_counts_them(name: str) -> None:
    make, inputs = MODELS[name]
    model, given = make(), inputs()
    counter = FlopCounterMode(display=False)
    with counter:
        model(given).sum().backward()
    expected = {str(one): count for one, count in counter.get_flop_counts()["Global"].items()}
    probe = EagerProbe(model, 1)
    with probe.describing():
        model(given).sum().backward()
    assert (
        products(
            ((operation.operation, operation.flops) for operation in probe.operations), expected
        )
        == expected
    )
    # the same from the records of the compiled graphs alone
    with record((*HOOKS, *AUTOGRAD)) as recording:
        torch.compile(model, backend="aot_eager")(given).sum().backward()
    found: list[tuple[str, int | None]] = []
    for graph in recording.records:
        if isinstance(graph, Graph) and graph.kind in ("forward", "backward"):
            values = values_of(graph.nodes)
            found += [(node.target, work_of_node(node, values).flops) for node in graph.nodes]
    assert products(found, expected) == expected


def products(found: Any, names: dict[str, int]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for operation, flops in found:
        name = operation.rpartition(".")[0]
        if name in names:
            counts[name] += flops
    return dict(counts)


def test_a_record_whose_arguments_were_cut_still_has_bytes() -> None:
    meta = TensorMeta(shape=(4, 8), dtype="float32", stride=(8, 1), bytes=128)
    known = {"a": meta, "c": meta}
    node = Node(
        name="cat", op="call_function", target="aten.cat.default", args="[a, c, … 20 mo…",
        inputs=("a", "c"), value=meta,
    )  # fmt: skip
    assert work_of_node(node, known).write_bytes == 128
    assert work_of_node(node, known).flops is None
    whole = Node(
        name="add", op="call_function", target="aten.add.Tensor", args="a, c, alpha=2",
        inputs=("a", "c"), value=meta,
    )  # fmt: skip
    assert work_of_node(whole, known).flops == 32
    custom = Node(name="odd", op="call_function", target="mine.odd.default", args="a", value=meta)
    assert work_of_node(custom, known) == Work()
