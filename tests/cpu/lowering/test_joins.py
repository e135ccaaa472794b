"""Joins and copies: pieces of a buffer, memory orders, mutation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.loops.graph import Buffer, Store
from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import DTYPES, Dtype, grid

X = torch.randn(3, 4, 5)
ROWS = torch.tensor([2, 0])
IMAGE = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cat": (lambda x, y: torch.cat([x, y * 2, x[:1]]), (X, X[1:])),
    "cat of the last": (lambda x, y: torch.cat([x, y], -1), (X, X[..., :2])),
    "cat of channels-last": (lambda x: torch.cat([x, x * 2], 1), (IMAGE,)),
    "cat of transposed": (lambda x: torch.cat([x.t(), x.t()], 1), (X[0],)),
    "cat of dtypes": (lambda x, y: torch.cat([x, y]), (X, X.double())),
    "cat with nothing": (lambda x: torch.cat([torch.zeros(0), x, x[:0]]), (X,)),
    "cat of nothing": (lambda x: torch.cat([x[:0], x[:0]]), (X,)),
    "stack": (lambda x: torch.stack([x, x + 1], 1), (X,)),
    "stack of numbers": (lambda x: torch.stack([x, x * 2], -1), (torch.tensor(2.0),)),
    "hstack": (lambda x: torch.hstack([x, x]), (X,)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=7.0), (X,)),
    "pad that crops": (lambda x: F.pad(x, (-1, 2, 1, -2)), (X,)),
    "pad that only crops": (lambda x: F.pad(x, (-1, -1)), (X,)),
    "pad of nothing": (lambda x: F.pad(x[:0], (0, 0, 0, 0, 1, 1), value=2.0), (X,)),
    "pad of channels-last": (lambda x: F.pad(x, (1, 1, 1, 1)), (IMAGE,)),
    "pad of integers": (lambda x: F.pad(x, (1, 1), value=3), (torch.arange(4),)),
    "clone": (lambda x: x.clone(), (X,)),
    "clone of a transpose": (lambda x: x.t().clone(), (X[0],)),
    "clone in row-major order": (
        lambda x: x.t().clone(memory_format=torch.contiguous_format), (X[0],),
    ),
    "channels-last": (lambda x: x.contiguous(memory_format=torch.channels_last), (IMAGE * 1,)),
    "to channels-last": (
        lambda x: x.to(memory_format=torch.channels_last), (IMAGE.contiguous(),),
    ),
    "contiguous": (lambda x: x.permute(2, 0, 1).contiguous(), (X,)),
    "contiguous of a slice": (lambda x: x[:, 1:3].contiguous(), (X,)),
    "to bfloat16": (lambda x: x.to(torch.bfloat16), (X,)),
    "to bool": (lambda x: (x > 0).to(torch.float32) + x.to(torch.bool), (X,)),
    "to int": (lambda x: (x * 9).to(torch.int32), (X,)),
    "to int8": (lambda x: x.to(torch.int8), (torch.arange(300),)),
    "clone twice": (lambda x: (x.clone(), x.clone()), (X,)),
    "clone and the value itself": (lambda x: _and_clone(x * 2), (X,)),
    "clone of a clone": (lambda x: (x.clone().clone(), x), (X,)),
    "same output twice": (lambda x: (y := x * 2, y, y.t()), (X[0],)),
    "expanded output": (lambda x: (x[:1] * 2).expand(3, 4, 5), (X,)),
    "window output": (lambda x: (x * 2).unfold(1, 2, 1), (X,)),
    "slice output": (lambda x: (x * 2)[:, 1:3, ::2], (X,)),
    "flip output": (lambda x: (x * 2).flip(1), (X,)),
    "input output": (lambda x: (x, x.view(-1), x.t() if x.dim() < 3 else x[0]), (X,)),
    "numbers": (lambda x: (x + 1, 3, None, 2.5, True), (X,)),
    "mutation": (lambda x: _mutate(x), (X,)),
    "mutation through a view": (lambda x: _mutate_view(x), (X,)),
    "mutation and the old content": (lambda x: _mutate_and_old(x), (X,)),
    "mutation by itself transposed": (lambda x: _mutate_transposed(x), (torch.randn(4, 4),)),
    "mutation of channels-last": (lambda x: _mutate(x), (IMAGE,)),
    "swap": (lambda x, y: _swap(x, y), (X, X + 1)),
    "mutation with another dtype": (lambda x, y: x.copy_(y), (X, X.double())),
    "mutation of a slice of memory": (lambda x: _mutate(x), (torch.randn(6, 8)[1:5, ::2],)),
}  # fmt: skip


def _and_clone(x: Any) -> Any:
    return x, x.clone()


def _mutate(x: Any) -> Any:
    x.mul_(2)
    return x + 1


def _mutate_view(x: Any) -> Any:
    x[1:, 0].add_(5)
    x[0, -1] = 3
    return x.sum()


def _mutate_and_old(x: Any) -> Any:
    old = x.clone()
    x.add_(1)
    return old, x * 2


def _mutate_transposed(x: Any) -> Any:
    x.copy_(x.t().clone())
    return x


def _swap(x: Any, y: Any) -> Any:
    z = x.clone()
    x.copy_(y)
    y.copy_(z)
    return z


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, dynamic: bool) -> None:
    fn, args = CASES[name]
    lowered(fn, *args, dynamic=dynamic)


def test_constants_of_the_graph() -> None:
    def fn(x: Any) -> Any:
        table = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
        return x * table, torch.tensor(2.5) * x, torch.tensor([True]), x + torch.tensor(3)

    found = lowered(fn, X)
    assert len(found.graphs[0].constants) == 1


IN_PLACE: dict[str, tuple[Callable[..., Any], tuple[Any, ...], bool]] = {
    "index_copy": (lambda x, i, v: x.index_copy_(0, i, v), (X, ROWS, X[:2] * 2), True),
    "index_put": (lambda x, i, v: _put(x, i, v), (X, ROWS, X[:2] * 2), True),
    "and a reader of the new content": (
        lambda x, i, v: x.index_copy_(0, i, v).sum(1), (X, ROWS, X[:2] * 2), True,
    ),
    "a slice": (lambda x, v: _slice(x, v), (X, X[:, :2] * 2), True),
    "a copy of its own elements": (lambda x, i: _put(x, i, x[1:].clone()), (X, ROWS), True),
    "a reader of the old content": (lambda x, i, v: _put_and_old(x, i, v), (X, ROWS, X[1:]), True),
    "a view of the old content": (
        lambda x, i, v: _put_and_flip(x, i, v), (X, ROWS, X[1:] + 1), True,
    ),
}  # fmt: skip


def _put(x: Any, i: Any, v: Any) -> None:
    x.index_put_((i,), v)


def _slice(x: Any, v: Any) -> None:
    x[:, 1:3] = v


def _put_and_old(x: Any, i: Any, v: Any) -> Any:
    old = x.sum(1)
    x.index_put_((i,), v)
    return old


def _put_and_flip(x: Any, i: Any, v: Any) -> Any:
    old = torch.flip(x, [0])
    x.index_put_((i,), v)
    return old, x.clone()


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_argument_is_written_in_place(name: str) -> None:
    fn, args, in_place = IN_PLACE[name]
    found = lowered(fn, *args)
    stores = [node for node in found.graphs[0].nodes if isinstance(node, Store)]
    assert (len(stores) == 1) == in_place


AGAIN: dict[str, tuple[Callable[..., Any], int]] = {
    "rows, then columns": (lambda x, v: _twice(x, v)[0], 1),
    "three times": (lambda x, v: _three_times(x, v)[0], 1),
    "three times, an output": (lambda x, v: _three_times(x, v), 2),
    "of nothing first": (lambda x, v: _twice(torch.slice_scatter(x, v[:0], 0, 0, 0), v)[0], 1),
    "from itself": (lambda x, v: torch.slice_scatter(y := _first(x, v), y[:2] + 1, 0, 1), 1),
    "a later reader": (lambda x, v: (lambda y, z: (z, y * 2))(*_twice(x, v)[::-1]), 2),
    "a later reader of a view": (lambda x, v: (lambda y, z: (z, y.T * 2))(*_twice(x, v)[::-1]), 2),
    "an output": (lambda x, v: _twice(x, v), 2),
}
"""Name -> the function, and how many copies of x it needs."""


def _first(x: Any, v: Any) -> Any:
    return torch.slice_scatter(x, v[:2], 0, 0, 2)


def _twice(x: Any, v: Any) -> tuple[Any, Any]:
    first = _first(x, v)
    return torch.slice_scatter(first, v[:, :1], 1, 3, 4), first


def _three_times(x: Any, v: Any) -> tuple[Any, Any]:
    second = _twice(x, v)[0]
    return torch.slice_scatter(second, v[:, 1:2], 1, 0, 1), second


@pytest.mark.parametrize("name", AGAIN)
def test_the_result_of_a_scatter_is_overwritten_by_the_next(name: str) -> None:
    fn, copies = AGAIN[name]
    found = lowered(fn, torch.randn(3, 4), torch.randn(3, 4))
    buffers = [node for node in found.graphs[0].nodes if isinstance(node, Buffer)]
    assert len(buffers) == copies


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_read_element_by_element_has_no_buffer_for_its_border(dtype: Dtype) -> None:
    x = grid(dtype, 3, 4, 5)
    for tensor in (x, x.mT.contiguous().mT):
        for pads in ((1, 2), (0, 1, 2, 0), (-1, 2), (1, 0, 0, 0, 0, 3)):
            found = lowered(lambda x, pads=pads: F.pad(x, pads, value=1) == 1, tensor)
            assert "Buffer" not in found.kinds()


def test_short_rows_are_padded_in_one_loop() -> None:
    """A store of a constant beside each row would move a line for it."""
    short = torch.randn(4, 5, 41)
    for pads in ((1, 2), (3, 0, 1, 1), (-1, 2)):
        assert lowered(lambda x, pads=pads: F.pad(x, pads, value=1.0), short).kinds() == ["Map"]
    several = lowered(lambda x: F.pad(x, (1, 2)), torch.randn(4, 5, 400)).kinds()
    assert several == ["Buffer", "Store", "Store", "Store"]
    assert "Store" in lowered(lambda x: F.pad(x, (0, 0, 1, 1)), short).kinds()
    across = short.mT.contiguous().mT
    assert "Store" in lowered(lambda x: F.pad(x, (1, 2)).contiguous(), across).kinds()


DIAGONALS = {
    "a vector": (torch.randn(5), 0, -2, -1),
    "above": (torch.randn(2, 5), 2, -2, -1),
    "below": (torch.randn(2, 5), -1, -2, -1),
    "of outer dimensions": (torch.randn(2, 3, 5), 0, 1, 0),
    "apart": (torch.randn(5, 2).t(), 0, 2, 0),
    "of numbers": (torch.arange(4), 0, -2, -1),
    "of truth": (torch.randn(4) > 0, 1, -2, -1),
    "of nothing": (torch.randn(2, 0), 0, -2, -1),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", DIAGONALS)
def test_a_diagonal_is_written_into_zeros(name: str, dynamic: bool) -> None:
    x, *where = DIAGONALS[name]
    found = lowered(lambda x: torch.diag_embed(x, *where), x, dynamic=dynamic)
    if x.numel():
        assert found.kinds() == ["Map", "Buffer", "Store", "Store"]
    read = lowered(lambda x: torch.diag_embed(x, *where) == 1, x, dynamic=dynamic)
    if where[0] == 0:
        assert "Store" not in read.kinds()
    if x.is_floating_point():
        lowered(lambda x: torch.diag_embed(x * 2, *where).sin(), x.clone().requires_grad_())


def test_gradients_of_diagonals() -> None:
    for shape in ((3, 4), (4, 3), (2, 3, 3)):
        x = torch.randn(shape, requires_grad=True)
        lowered(lambda x: x.diagonal(0, -2, -1) * 2, x)
        lowered(lambda x: x.diagonal(1, 0, 1) * 2, x)


def test_gradients_of_slices_are_added_without_buffers() -> None:
    def differences(x: torch.Tensor) -> torch.Tensor:
        return (x[:, 1:] - x[:, :-1]).square() * 2

    for x in (torch.randn(4, 7), torch.randn(4, 7, 2).mT.contiguous().mT, torch.randn(3, 2, 1)):
        found = lowered(differences, x.requires_grad_())
        assert "Buffer" not in found.kinds(1)
    lowered(lambda x: x[1] * 2 + x[:, 0], torch.randn(4, 4).requires_grad_())
    lowered(lambda x: x[1:] * x[:-1], torch.randn(9, 4).requires_grad_(), dynamic=True)


def test_gradients_of_steps_are_added_without_buffers() -> None:
    """As in a scan by halves, which combines the even elements with the odd ones."""

    def halves(x: torch.Tensor) -> torch.Tensor:
        return (x[1::2] * x[::2]).square() * 2 + x[0:1]

    thirds = torch.randn(4, 9, 5)
    for x in (torch.randn(8, 5), torch.randn(6, 2, 3), torch.randn(2, 7)):
        found = lowered(halves, x.requires_grad_())
        assert "Buffer" not in found.kinds(1)
    found = lowered(lambda x: x[:, 1::3] * x[:, 2::3], thirds.requires_grad_())
    assert "Buffer" not in found.kinds(1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("start", "end", "step"), [(0, 12, 2), (1, 12, 2), (4, 11, 3), (5, 7, 4)])
def test_steps_into_a_number_are_read_where_they_are(
    dtype: Dtype, start: int, end: int, step: int
) -> None:
    def between(x: torch.Tensor) -> torch.Tensor:
        whole = torch.full((3, 12, 5), 1, dtype=x.dtype)
        return whole.slice_scatter(x, 1, start, end, step) == 1

    x = grid(dtype, 3, len(range(start, end, step)), 5)
    assert "Buffer" not in lowered(between, x).kinds()
    assert "Buffer" not in lowered(between, x.mT.contiguous().mT).kinds()


def test_steps_within_rows_or_of_very_short_ones_are_stores() -> None:
    """Reading them element by element takes longer: rows of two, 1.8 times as long."""

    def spread(x: torch.Tensor, dim: int) -> torch.Tensor:
        whole = torch.zeros(8, 8, x.shape[-1])
        return whole.slice_scatter(x.narrow(dim, 0, 4), dim, 0, 8, 2) * 2

    for size, dim, stores in ((8, 2, True), (2, 1, True), (3, 1, False), (2, 0, False)):
        found = lowered(lambda x, dim=dim: spread(x, dim), torch.randn(8, 8, size))
        assert ("Store" in found.kinds()) == stores


@pytest.mark.parametrize("repeats", [2, 3, 4, 5])
def test_neighbours_that_repeat_an_element_are_stores_side_by_side(repeats: int) -> None:
    for x in (X, X.mT.contiguous().mT, X.bool(), X.bfloat16()):
        found = lowered(lambda x: x.repeat_interleave(repeats), x)
        stores = [node for node in found.graphs[0].nodes if isinstance(node, Store)]
        assert len(stores) == (repeats if repeats <= 4 else 0)
        found = lowered(lambda x: x.repeat_interleave(repeats, 1) + 1, x)
        assert "Store" not in found.kinds()


def test_a_number_that_covers_a_slice_is_part_of_its_readers_loop() -> None:
    """As in the gradient of an assignment."""

    def covered(x: torch.Tensor) -> torch.Tensor:
        ends = [(0, 2), (1, 4), (3, 6), (0, 6)]
        zeros = [torch.zeros_like(x[:, low:high]) for low, high in ends]
        cut = [x.slice_scatter(z, 1, *end) for z, end in zip(zeros, ends, strict=True)]
        row = x.select_scatter(torch.full_like(x[0], 3), 0, 1)
        return sum(cut, start=row * 2)  # type: ignore[return-value]

    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        x = grid(dtype, 4, 6)
        for argument in (x, x.t().contiguous().t()):
            assert set(lowered(covered, argument).kinds()) == {"Map"}


def test_a_roll_along_several_dimensions_writes_once() -> None:
    for dims, stores in (((0, 1), 4), ((0, 1, 2), 8), ((1, 1), 2), ((-1, 0), 4)):
        found = lowered(lambda x, dims=dims: x.roll((1,) * len(dims), dims), X)
        assert found.kinds() == ["Buffer", *["Store"] * stores]
    assert lowered(lambda x: x.roll((3, 4, 1), (0, 1, 2)), X).kinds() == ["Buffer", *["Store"] * 2]
