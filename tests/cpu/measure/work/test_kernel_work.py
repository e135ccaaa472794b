"""Bytes and FLOPs of kernels, compared with counts by hand, both engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tcw.compiler.engine.backend import backend
from tcw.compiler.measure.work.kernel_work import GraphWork
from tcw.compiler.measure.work.operations import Work
from tcw.compiler.trace.records import Graph, Kernel, MemoryPlan, SchedulerNode
from tests.cpu.inductor.recorded import recording

ENGINES: dict[str, Any] = {"inductor": "inductor", "tcw": backend}


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TCW_STRICT", "1")
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path))
    yield
    torch._dynamo.reset()


def works(engine: str, function: Callable[..., Any], *inputs: Any) -> list[tuple[Kernel, Work]]:
    """The work of each kernel and call, in order. Nothing is built."""
    with recording() as recorded, torch.no_grad():
        torch.compile(function, backend=ENGINES[engine])(*inputs)
    (graph,) = [one for one in recorded.all(Graph) if one.kind == "lowered"]
    kernels = recorded.all(Kernel)
    (plan,) = recorded.all(MemoryPlan)
    graph_work = GraphWork(graph, kernels, recorded.all(SchedulerNode), plan)
    rows = [
        (step, kernel, work)
        for kernel in kernels
        for step, work in zip(kernel.steps or (0,), graph_work.of(kernel), strict=True)
    ]
    return [(one, work) for _, one, work in sorted(rows, key=lambda row: row[0])]


def only(found: list[tuple[Kernel, Work]]) -> Work:
    ((_, work),) = found
    return work


both = pytest.mark.parametrize("engine", list(ENGINES))


@both
def test_a_chain_is_read_once_and_written_once(engine: str) -> None:
    x, y = torch.randn(64, 32), torch.randn(64, 32)
    work = only(works(engine, lambda x, y: torch.relu(x * y + x), x, y))
    size = 64 * 32 * 4
    assert work == Work(2 * size, size, 3 * 64 * 32)


@both
def test_a_broadcast_row_counts_as_what_is_stored(engine: str) -> None:
    work = only(works(engine, lambda x, y: x + y, torch.randn(64, 32), torch.randn(32)))
    assert work == Work(64 * 32 * 4 + 32 * 4, 64 * 32 * 4, 64 * 32)


@both
def test_what_stays_inside_is_in_no_memory(engine: str) -> None:
    work = only(works(engine, lambda x: torch.softmax(x, -1), torch.randn(64, 32)))
    assert (work.read_bytes, work.write_bytes) == (64 * 32 * 4, 64 * 32 * 4)


@both
def test_two_results_of_one_kernel(engine: str) -> None:
    work = only(works(engine, lambda x: (x + 1, (x + 1) * x), torch.randn(64, 32)))
    size = 64 * 32 * 4
    assert (work.read_bytes, work.write_bytes) == (size, 2 * size)


@both
def test_of_a_slice_only_what_it_shows(engine: str) -> None:
    work = only(works(engine, lambda x: x[:, :8] * 2, torch.randn(64, 32)))
    assert work == Work(64 * 8 * 4, 64 * 8 * 4, 64 * 8)


@both
def test_slices_of_one_buffer_are_parts_of_it(engine: str) -> None:
    def chunks(x: torch.Tensor) -> torch.Tensor:
        a, b, _ = x.chunk(3, -1)
        return a * b

    work = only(works(engine, chunks, torch.randn(16, 96)))
    assert work == Work(2 * 16 * 32 * 4, 16 * 32 * 4, 16 * 32)


@both
def test_rows_of_a_table_are_no_more_than_were_asked_for(engine: str) -> None:
    def looked_up(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return functional.embedding(ids, table) * 2

    work = only(works(engine, looked_up, torch.randint(0, 1000, (16,)), torch.randn(1000, 32)))
    assert work == Work(16 * 32 * 4 + 16 * 8, 16 * 32 * 4, 16 * 32)


@both
def test_rows_that_are_normalised_are_the_same_rows_in_each_walk(engine: str) -> None:
    def looked_up(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(functional.embedding(ids, table), (32,))

    work = only(works(engine, looked_up, torch.randint(0, 1000, (16,)), torch.randn(1000, 32)))
    assert (work.read_bytes, work.write_bytes) == (16 * 32 * 4 + 16 * 8, 16 * 32 * 4)


@both
def test_pieces_that_are_put_together_are_written_once(engine: str) -> None:
    found = works(
        engine, lambda x, y: torch.cat([x * 2, y + 1], -1), torch.randn(64, 8), torch.randn(64, 24)
    )
    size = 64 * 32 * 4
    assert sum(work.read_bytes or 0 for _, work in found) == size
    assert sum(work.write_bytes or 0 for _, work in found) == size


@both
def test_an_argument_that_is_written_in_place(engine: str) -> None:
    def counted(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)

    found = works(engine, counted, torch.zeros(64, 32))
    size = 64 * 32 * 4
    assert sum(work.read_bytes or 0 for _, work in found) == size
    assert sum(work.write_bytes or 0 for _, work in found) == size


@both
def test_between_products_each_side_is_in_memory(engine: str) -> None:
    model, x = nn.Sequential(nn.Linear(32, 64, bias=False), nn.GELU(), nn.LayerNorm(64)), None
    x = torch.randn(16, 32)
    found = works(engine, model, x)
    (call, product), (_, rest) = found
    assert call.language == "aten"
    assert product == Work(16 * 32 * 4 + 64 * 32 * 4, 16 * 64 * 4, 2 * 16 * 32 * 64)
    assert (rest.read_bytes, rest.write_bytes) == (16 * 64 * 4 + 2 * 64 * 4, 16 * 64 * 4)


@both
def test_each_call_of_a_kernel_that_is_called_again(engine: str) -> None:
    """Inductor gives equal loops one kernel with several calls."""

    def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = functional.gelu(x @ w)
        return x

    found = works(engine, layers, torch.randn(16, 32), torch.randn(32, 32))
    size = 16 * 32 * 4
    loops = [work for kernel, work in found if kernel.language != "aten"]
    assert [(loop.read_bytes, loop.write_bytes) for loop in loops] == [(size, size)] * 3
    products = [work for kernel, work in found if kernel.language == "aten"]
    assert products == [Work(size + 32 * 32 * 4, size, 2 * 16 * 32 * 32)] * 3


@both
def test_what_is_computed_anew_is_written_once(engine: str) -> None:
    def twice(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        return y @ w, (y @ w) + y

    found = works(engine, twice, torch.randn(64, 32), torch.randn(32, 32))
    size = 64 * 32 * 4
    first = next(work for kernel, work in found if kernel.language != "aten")
    assert first == Work(size, size, 64 * 32)


@both
def test_sizes_that_are_not_known_are_not_counted(engine: str) -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.randn(64, 32)
    torch._dynamo.mark_dynamic(x, 0)
    assert only(works(engine, doubled, x)) == Work(None, None, None)
