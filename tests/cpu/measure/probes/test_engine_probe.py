"""Graphs of our own engine, timed step by step in the user's call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler.engine.backend import backend
from compiler.measure.engine_graphs import engine_graphs
from compiler.measure.probes.clock import HostClock, Reading
from compiler.measure.probes.engine_probe import EngineProbe
from compiler.runtime.toolchain import NoCompiler, find_compiler

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Errors of ours are raised; one cache for all tests of this file."""
    folder: Path = tmp_path_factory.getbasetemp() / "engine-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("TCW_STRICT", "1")
    monkeypatch.setenv("TCW_CACHE_DIR", str(folder))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@dataclass
class Probed:
    """A compiled model and the probes of its graphs."""

    model: Callable[..., Any]
    probes: list[EngineProbe]

    def readings(self, call: Callable[[], Any]) -> tuple[Any, dict[str, dict[int, Reading]]]:
        """What a call answers under probes; each graph's readings, -1 the whole graph."""
        clocks = [HostClock() for _ in self.probes]
        entered = [p.timing(c, 100) for p, c in zip(self.probes, clocks, strict=True)]
        for one in entered:
            one.__enter__()
        answer = call()
        for one in entered:
            one.__exit__(None, None, None)
        return answer, {
            probe.graph: {one.key - 101: one for one in clock.readings()}
            for probe, clock in zip(self.probes, clocks, strict=True)
        }


def probed(model: Callable[..., Any], call: Callable[[Callable[..., Any]], Any], **options: Any):
    with engine_graphs(keep_arguments=False) as graphs:
        compiled = torch.compile(model, backend=backend, **options)
        call(compiled)
    return Probed(compiled, [EngineProbe(graph) for graph in graphs])


class Mixed(nn.Module):
    """Loops, products, loops that write over what they read."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.second(torch.relu(self.first(x * 2))), -1) + 1


def whole_and_inside(readings: dict[int, Reading], steps: int) -> None:
    """Every step was read once, inside the whole graph, in order."""
    assert sorted(readings) == list(range(-1, steps))
    whole = readings[-1]
    starts = [readings[index].start for index in range(steps)]
    assert starts == sorted(starts)
    assert all(start >= whole.start for start in starts)
    assert all(one.ns >= 0 for one in readings.values())


def test_each_step_of_an_inference_is_read_inside_the_whole_graph() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 16)
    with torch.no_grad():
        found = probed(Mixed(), lambda model: model(x))
        plain = found.model(x)
        answer, readings = found.readings(lambda: found.model(x))
    (probe,) = found.probes
    kinds = [step.kind for step in probe.steps]
    assert (kinds.count("aten"), kinds.count("kernel")) == (2, 3)
    assert [step.index for step in probe.steps] == [0, 1, 2, 3, 4]
    whole_and_inside(readings[probe.graph], 5)
    assert torch.equal(plain, answer)
    with torch.no_grad():
        assert torch.equal(plain, found.model(x))
