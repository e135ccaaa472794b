"""Indexing: gathers and stores with indices, including negative ones and ones out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tcw.compiler.loops.graph import Map
from tests.cpu.lowering.harness import lowered

X = torch.arange(60.0).reshape(3, 4, 5) / 7
I2 = torch.tensor([[1, 0], [2, -1]])
I1 = torch.tensor([3, 0, -2])
ROWS = torch.tensor([2, 0, 2, 1])
WEIGHT = torch.randn(7, 6)
TOKENS = torch.tensor([[1, 6, 3], [0, 3, 3]])

READS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "embedding": (torch.nn.functional.embedding, (TOKENS, WEIGHT)),
    "embedding of a transposed table": (
        torch.nn.functional.embedding,
        (TOKENS % 6, WEIGHT.t()),
    ),
    "embedding of one": (torch.nn.functional.embedding, (torch.tensor(4), WEIGHT)),
    "index": (lambda x, i: x[i], (X, I2)),
    "index of a middle dimension": (lambda x, i: x[:, i], (X, I1)),
    "index of two dimensions": (lambda x, i, j: x[i, j], (X, I2, I2)),
    "index apart": (lambda x, i, j: x[i, :, j], (X, I2, I1[:2])),
    "index of the last two": (lambda x, i, j: x[:, i, j], (X, I2, I1[:2])),
    "index with a new dimension": (lambda x, i: x[i, None, 1:], (X, I1[1:])),
    "index by int32": (lambda x, i: x[i], (X, ROWS.int())),
    "index of channels-last": (
        lambda x, i: x[:, i],
        (torch.randn(2, 4, 3, 5).contiguous(memory_format=torch.channels_last), I1),
    ),
    "index without dimensions": (
        lambda x, i: torch.ops.aten.index(x, [i]),
        (X, torch.tensor(1)),
    ),
    "index of what is computed": (lambda x, i: (x * 2)[:, i] + 1, (X, I1)),
    "index_select": (lambda x, i: torch.index_select(x, 1, i), (X, ROWS)),
    "gather": (lambda x, i: x.gather(-1, i), (X, torch.randint(0, 5, (3, 4, 2)))),
    "gather of fewer rows": (lambda x, i: x.gather(1, i), (X, torch.randint(0, 4, (2, 6, 3)))),
    "gather without dimensions": (
        lambda x, i: x.gather(0, i),
        (torch.tensor(3.0), torch.tensor(0)),
    ),
    "take": (lambda x, i: torch.take(x, i), (X.transpose(0, 1), I2)),
    "take_along_dim": (
        lambda x, i: torch.take_along_dim(x, i, 0),
        (X, ROWS.view(1, 4, 1)),
    ),
    "no index": (lambda x, i: x[i], (X, torch.zeros(0, dtype=torch.int64))),
    "reflection pad": (lambda x: torch.nn.functional.pad(x, (2, 1), mode="reflect"), (X,)),
    "replication pad": (
        lambda x: torch.nn.functional.pad(x[None], (2, 1, 0, 3), mode="replicate"),
        (X,),
    ),
    "nearest": (lambda x: torch.nn.functional.interpolate(x[None], scale_factor=2), (X,)),
}

WRITES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "index_put": (lambda x, i, v: x.index_put((i,), v), (X, ROWS[:2], torch.randn(2, 4, 5))),
    "index_put broadcast": (
        lambda x, i, v: torch.ops.aten.index_put(x, [None, i], v), (X, ROWS[1:], torch.randn(3, 1)),
    ),
    "index_put of a number": (
        lambda x, i: torch.ops.aten.index_put(x, [i], torch.tensor(2.0)), (X, ROWS),
    ),
    "index_put accumulate": (
        lambda x, i, v: x.index_put((i,), v, accumulate=True), (X, ROWS, torch.randn(4, 4, 5)),
    ),
    "index_put at a mask": (
        lambda x: torch.ops.aten.index_put(x, [x > 3], torch.tensor(-1.0)), (X,),
    ),
    "index_put at a mask of rows": (
        lambda x, m: torch.ops.aten.index_put(x, [None, m], torch.tensor(-1.0)),
        (X, torch.tensor([True, False, True, True])),
    ),
    "assignment": (lambda x, i: _assign(x, i), (X, I1)),
    "scatter of a number": (lambda x, i: x.scatter(1, i, 5.0), (X, ROWS.view(1, 4, 1) % 3)),
    "scatter": (
        lambda x, i, s: x.scatter(1, i, s), (X, torch.argsort(X, 1)[:2, :3], torch.randn(3, 4, 5)),
    ),
    "scatter of ones": (
        lambda i: torch.zeros(4, 7).scatter(1, i, 1.0), (ROWS.view(4, 1),),
    ),
    "scatter of a source into a constant": (
        lambda i, s: torch.full((4, 7), 2.0).scatter(-1, i, s),
        (ROWS.view(4, 1), torch.randn(4, 3)),
    ),
    "scatter with add": (
        lambda x, i, s: x.scatter(0, i, s, reduce="add"),
        (X, torch.randint(0, 3, (2, 4, 5)), torch.randn(2, 4, 5)),
    ),
    "scatter_add": (
        lambda x, i, s: x.scatter_add(0, i, s),
        (X, torch.randint(0, 3, (6, 4, 5)), torch.randn(6, 4, 5)),
    ),
    "scatter_reduce": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "sum"),
        (X, torch.randint(0, 3, (6, 4, 5)), torch.randn(6, 4, 5)),
    ),
    "scatter_reduce without the old value": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "sum", include_self=False),
        (X, torch.randint(0, 3, (6, 4, 5)), torch.randn(6, 4, 5)),
    ),
    "index_add": (lambda x, i, s: x.index_add(0, i, s), (X, ROWS, torch.randn(4, 4, 5))),
    "index_add of columns": (
        lambda x, i, s: x.index_add(1, i, s),
        (torch.randn(40, 64), torch.randint(64, (50,)), torch.randn(40, 50)),
    ),
    "scatter_add of rows": (
        lambda x, i, s: x.scatter_add(0, i, s),
        (torch.randn(40, 600), torch.randint(40, (50, 600)), torch.randn(50, 600)),
    ),
    "index_copy": (lambda x, i, s: x.index_copy(0, i, s), (X, ROWS[:2], torch.randn(2, 4, 5))),
    "index_fill": (lambda x, i: x.index_fill(1, i, 3.5), (X, I1)),
    "masked_fill": (lambda x: x.masked_fill(x > 2, -1), (X,)),
    "index_add to a transposed matrix": (
        lambda x, i, s: x.t().index_add(0, i, s.t(), alpha=2), (X[0], ROWS, torch.randn(4, 4)),
    ),
    "index_add to permuted dimensions": (
        lambda x, i, s: x.permute(2, 0, 1).index_add(-1, i, s), (X, ROWS, torch.randn(5, 3, 4)),
    ),
    "index_reduce, mean": (
        lambda x, i, s: x.index_reduce(0, i, s, "mean"), (X, ROWS, torch.randn(4, 4, 5)),
    ),
    "index_reduce, mean of integers": (
        lambda x, i, s: x.index_reduce(0, i, s, "mean"),
        (torch.arange(-6, 6).view(4, 3), torch.tensor([1, 1, 3]), torch.arange(-9, 0).view(3, 3)),
    ),
    "index_reduce, mean without the old value": (
        lambda x, i, s: x.index_reduce(1, i, s, "mean", include_self=False),
        (X, ROWS, torch.randn(3, 4, 5)),
    ),
    "integers": (lambda x, i: x.index_add(0, i, x[i]), (X.long(), ROWS)),
    "slice_scatter": (lambda x: x.slice_scatter(x[:, :2] * 2, 1, 1, 3), (X,)),
    "slice_scatter with a step": (lambda x: x.slice_scatter(x[:, :2] * 2, 1, 0, 4, 2), (X,)),
    "slice_scatter to the end": (lambda x: x.slice_scatter(x[:, :1] * 2, 1, -1), (X,)),
    "select_scatter": (lambda x: x.select_scatter(x[:, 0] * 2, 1, -1), (X,)),
    "diagonal_scatter": (lambda x: x.diagonal_scatter(torch.ones(5, 3), 0, 0, 1), (X,)),
    "as_strided_scatter": (
        lambda x: x.as_strided_scatter(torch.ones(2, 3), (2, 3), (7, 2), 4), (X,),
    ),
    "assignment to a slice": (lambda x: _assign_slice(x), (X,)),
}  # fmt: skip


def _assign(x: Any, i: Any) -> Any:
    y = x.clone()
    y[:, i] = 7
    return y


def _assign_slice(x: Any) -> Any:
    y = x.clone()
    y[:, 1:3] = x[:, :2] + 1
    y[0] = -1
    return y


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", READS)
def test_read(name: str, dynamic: bool) -> None:
    fn, args = READS[name]
    lowered(fn, *args, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_write(name: str, dynamic: bool) -> None:
    fn, args = WRITES[name]
    lowered(fn, *args, dynamic=dynamic)


@pytest.mark.parametrize(
    ("fn", "bad", "good"),
    [
        (lambda x, i: x[i], 3, -3),
        (lambda x, i: x[i], -4, 2),
        (lambda x, i: torch.nn.functional.embedding(i, x[0]), -1, 3),
        (lambda x, i: x[:, 0].gather(0, i.view(1, 1)), 3, 2),
        (lambda x, i: x.index_put((i,), x[:1]), 5, -1),
        (lambda x, i: x.index_copy(0, i, x[:1]), -4, 1),
        (lambda x, i: x.transpose(0, 1).take(i), 60, -60),
        (lambda x, i: x.transpose(0, 1).take(i), -61, 59),
    ],
)
def test_an_index_out_of_range_is_an_error(fn: Callable[..., Any], bad: int, good: int) -> None:
    found = lowered(fn, X, torch.tensor([good]), calls=None)
    with pytest.raises(IndexError):
        found.run(0, [X, torch.tensor([bad])])


def test_elements_of_a_tensor_across_memory_are_taken_from_where_it_lies() -> None:
    x, index = torch.randn(40, 50, 3), torch.randint(-6000, 6000, (7,))
    found = lowered(lambda x, i: x.permute(2, 0, 1).take(i), x, index)
    maps = [node for node in found.graphs[0].nodes if isinstance(node, Map)]
    assert maps
    copied = [node for node in maps if node.domain not in ((7,), ())]
    assert not copied, "a copy of the tensor has 6,000 elements"
