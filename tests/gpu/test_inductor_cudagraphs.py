"""Inductor's CUDA graphs as they are recorded, beside torch's own counts of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor.cudagraph_trees import get_manager, reset_cudagraph_trees

from tcw.compiler.capture import frames
from tcw.compiler.inductor import cudagraph_hook
from tcw.compiler.trace.records import CudagraphRecording, CudagraphSkip
from tests.cpu.recorded import Recorded, record


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) + x.sin()


@pytest.fixture(autouse=True)
def empty() -> None:
    torch._dynamo.reset()
    reset_cudagraph_trees()
    counters.clear()


def recorded_by_torch() -> int:
    """How many graphs the manager has numbered; takes a number. A reset makes another manager."""
    return int(get_manager(0).new_graph_id().id)


def run(
    function: Callable[..., Any], calls: list[tuple[Any, ...]], **options: Any
) -> tuple[Recorded, int]:
    """The recording, and how many graphs torch has numbered."""
    with record((frames.HOOK, cudagraph_hook.HOOK)) as found:
        compiled = torch.compile(function, mode="reduce-overhead", **options)
        with torch.no_grad():
            for given in calls:
                compiled(*given)
        torch.cuda.synchronize()
        return found, recorded_by_torch()


def inputs(*sizes: int) -> list[tuple[Any, ...]]:
    return [(torch.randn(size, 64, device="cuda"),) for size in sizes]


def test_a_graph_is_recorded_once() -> None:
    found, number = run(Net().cuda(), inputs(*[8] * 6))
    (recording,) = found.all(CudagraphRecording)
    assert number == 1
    assert (recording.graph, recording.again, recording.reason, recording.sizes) == (
        "0/0/inference",
        0,
        "",
        (),
    )
    assert 0 < recording.seconds < 30
    assert recording.bytes is not None
    assert not found.all(CudagraphSkip)
    assert counters["inductor"]["cudagraph_skips"] == 0


def test_each_size_is_recorded() -> None:
    found, number = run(Net().cuda(), inputs(*[8, 16, 24] * 3), dynamic=True)
    made = found.all(CudagraphRecording)
    assert len(made) == number
    assert sorted(one.sizes for one in made if one.again == 0) == [(8,), (16,), (24,)]


def test_a_parameter_that_moves_is_recorded_again() -> None:
    net = Net().cuda()
    compiled = torch.compile(net, mode="reduce-overhead")
    (x,) = inputs(8)[0]
    with record((frames.HOOK, cudagraph_hook.HOOK)) as found, torch.no_grad():
        kept = []
        for step in range(6):
            if step >= 3:
                kept.append(net.linear.weight.data)
                net.linear.weight.data = net.linear.weight.data.clone()
            compiled(x)
        number = recorded_by_torch()
    made = found.all(CudagraphRecording)
    assert len(made) == number
    assert [one.again for one in made] == list(range(len(made)))
    assert len(made) == 4
    for one in made[1:]:
        assert one.reason == "static input data pointer changed"
        assert len(one.inputs) == 1
        assert one.location is not None
        assert one.location.function == "forward"


def test_a_written_input_is_skipped() -> None:
    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        return x.sin() + y

    y = torch.randn(8, 64, device="cuda")
    found, _ = run(add, [(x, y) for (x,) in inputs(*[8] * 4)])
    skips = found.all(CudagraphSkip)
    assert len(skips) == counters["inductor"]["cudagraph_skips"] == 1
    assert skips[0].reason == "mutated inputs (1 instances)"
    assert skips[0].location is not None
    assert skips[0].location.line == add.__code__.co_firstlineno + 1
    assert skips[0].compile_id == "0/0"
    assert not found.all(CudagraphRecording)


def test_a_part_on_the_cpu_is_between_two_graphs() -> None:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        y = (x.sin() * 2).cpu()
        return (y + 1).cuda().cos() @ x.t()

    found, number = run(there_and_back, inputs(*[8] * 4))
    parts = [skip for skip in found.all(CudagraphSkip) if skip.scope == "part"]
    assert parts
    lines = {part.location.line for part in parts if part.location}
    first = there_and_back.__code__.co_firstlineno
    assert lines == {first + 1, first + 2}
    assert all(part.location for part in parts)
    made = found.all(CudagraphRecording)
    assert len(made) == number == 2
    assert {one.part for one in made} == {"partition_0", "partition_1"}


def test_a_training_step() -> None:
    net = Net().cuda()
    compiled = torch.compile(net, mode="reduce-overhead")
    with record((frames.HOOK, cudagraph_hook.HOOK)) as found:
        for (x,) in inputs(*[8] * 5):
            compiled(x).sum().backward()
            net.zero_grad(set_to_none=True)
        number = recorded_by_torch()
    made = found.all(CudagraphRecording)
    assert len(made) == number
    assert {one.graph for one in made} == {"0/0/forward", "0/0/backward"}
