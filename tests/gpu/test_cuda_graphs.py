"""`mode="reduce-overhead"` of our engine equals single launches, whatever outputs are held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tcw.compiler.engine.cuda_graphs as engine
from tcw.compiler.engine.backend import backend
from tcw.compiler.runtime.gpu import graph_replay as runtime
from tcw.compiler.trace.records import CudagraphRecording, CudagraphSkip
from tests.cpu.worker.recorded import recorded


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was not replayed, and why."""
    monkeypatch.setenv("TCW_STRICT", "1")
    torch._dynamo.reset()
    torch.manual_seed(0)
    said: list[str] = []
    monkeypatch.setattr(engine, "skipped", lambda reason, *_, **__: said.append(reason))
    return said


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend=backend, mode="reduce-overhead", **options)


def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each replay."""
    found: list[int] = []
    replay = runtime.RecordedCall.replay

    def counted(self: Any, arguments: list[Any]) -> Any:
        found.append(1)
        return replay(self, arguments)

    monkeypatch.setattr(runtime.RecordedCall, "replay", counted)
    return found


def two(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.softmax(x, 0) * 3, 1) @ x


def test_each_call_has_its_own_result(monkeypatch: pytest.MonkeyPatch, strict: list[str]) -> None:
    counted, function = replays(monkeypatch), compiled(two)
    with torch.no_grad():
        for _ in range(6):
            x = torch.randn(64, 64, device="cuda")
            torch.testing.assert_close(function(x), two(x))
        kept = []
        for number in range(7):
            x = torch.full((64, 64), number / 7, device="cuda")
            kept.append((function(x), two(x)))
        for found, expected in kept:
            torch.testing.assert_close(found, expected)
    assert len(counted) >= 5
    (said,) = strict
    assert said.startswith(f"outputs of its last {runtime.RECORDINGS} calls are alive")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(128, 256), nn.Linear(256, 128)
        self.norm = nn.BatchNorm1d(128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.first(x))
        torch._dynamo.graph_break()
        return self.norm(self.second(h) + x)


@pytest.mark.parametrize("to_none", [True, False])
def test_training_of_two_graphs(
    monkeypatch: pytest.MonkeyPatch, strict: list[str], to_none: bool
) -> None:
    counted = replays(monkeypatch)
    models = [Net().cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models]
    calls = [models[0], compiled(models[1])]
    data = [torch.randn(64, 128, device="cuda") for _ in range(12)]
    losses: list[list[float]] = [[], []]
    for x in data:
        for side in range(2):
            loss = (calls[side](x) - x.roll(1, 0)).square().mean()
            loss.backward()
            optimizers[side].step()
            optimizers[side].zero_grad(set_to_none=to_none)
            losses[side].append(loss.item())
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    for one, other in zip(models[0].state_dict().values(), models[1].state_dict().values(),
                          strict=True):  # fmt: skip
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4)
    assert len(counted) >= 4 * (len(data) - 4), strict
    assert not strict


def test_written_inputs(strict: list[str]) -> None:
    def add(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache[1:3] = x.softmax(0)
        cache.add_(1)
        return cache.softmax(-1).sum(0) @ x.t()

    function = compiled(add)
    caches = [torch.zeros(8, 16, device="cuda") for _ in range(2)]
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(2, 16, device="cuda")
            torch.testing.assert_close(function(x, caches[0]), add(x, caches[1]))
            torch.testing.assert_close(caches[0], caches[1])
    assert not strict


def test_sizes_that_change(monkeypatch: pytest.MonkeyPatch, strict: list[str]) -> None:
    counted, function = replays(monkeypatch), compiled(two, dynamic=True)
    with torch.no_grad():
        for _ in range(3):
            for size in (16, 32, 48):
                x = torch.randn(size, size, device="cuda")
                torch.testing.assert_close(function(x), two(x))
    assert len(counted) == 6
    assert not strict


def test_another_stream_waits_for_the_last_one() -> None:
    function = compiled(two)
    x = torch.randn(512, 512, device="cuda")
    with torch.no_grad():
        expected = two(x)
        for _ in range(3):
            function(x)
        streams = [torch.cuda.Stream() for _ in range(3)]
        torch.cuda.synchronize()
        found = []
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(3_000_000)
                found.append(function(x))
    torch.cuda.synchronize()
    for one in found:
        torch.testing.assert_close(one, expected)


def test_random_numbers_differ_from_call_to_call(strict: list[str]) -> None:
    def drop(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x.softmax(0), 0.5).softmax(1)

    function = compiled(drop)
    x = torch.randn(64, 64, device="cuda")
    with torch.no_grad():
        found = [function(x) for _ in range(4)]
    assert len({one.sum(0).sum().item() + one[0].std().item() for one in found}) == 4


def test_a_graph_of_the_user_s_contains_the_kernels() -> None:
    function = compiled(two)
    x = torch.randn(64, 64, device="cuda")
    with torch.no_grad():
        for _ in range(3):
            function(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = function(x)
        x.normal_()
        graph.replay()
        torch.testing.assert_close(y, two(x))


def test_a_skip_is_recorded_with_its_line(tmp_path: Path) -> None:
    text = (
        "import torch\n"
        "def model(x):\n"
        "    y = x.softmax(0).softmax(1)\n"
        "    return y + torch.ones(4).sum().item() + y[y > 0].sum()\n"
        "example_inputs = (torch.randn(4, 4, device='cuda'),)\n"
    )
    found = recorded(
        tmp_path, text, engine="tcw", mode="reduce-overhead", grad="no-grad", until="run"
    )
    assert found.all(CudagraphSkip)


def test_recordings_are_in_the_trace(tmp_path: Path) -> None:
    text = """
import torch
def model(x):
    return torch.softmax(torch.softmax(x, 0) * 3, 1) @ x
example_inputs = [(torch.randn(64, 64, device="cuda"),) for _ in range(4)]
"""
    found = recorded(tmp_path, text, engine="tcw", mode="reduce-overhead", until="run")
    one, *_ = found.all(CudagraphRecording)
    assert (one.graph, one.again, one.reason, one.call) == ("0/0/inference", 0, "", 2)
    assert one.seconds > 0
    assert one.bytes is not None
