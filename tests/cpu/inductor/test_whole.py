"""Properties of all of Inductor's records together: sub-graphs, symbolic sizes, our own errors."""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.inductor import HOOKS, generation, scheduler_nodes
from tcw.compiler.trace.records import (
    FusionGroups,
    Graph,
    Kernel,
    MemoryPlan,
    SchedulerNode,
    Warned,
    Wrapper,
)
from tests.cpu import recorded as harness
from tests.cpu.inductor.recorded import record, recording


def test_sub_graphs_have_ids_of_their_own() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))

    x = torch.ones(8)
    recorded, output = record(function, x)
    torch.testing.assert_close(output, function(x))
    lowered = {graph.id for graph in recorded.all(Graph) if graph.kind == "lowered"}
    assert len(lowered) == 3
    assert "0/0/inference/lowered" in lowered
    for kind in (MemoryPlan, FusionGroups, Wrapper):
        assert {found.graph for found in recorded.all(kind)} == lowered
    assert {kernel.graph for kernel in recorded.all(Kernel)} == lowered
    assert recorded.all(Warned) == []


def test_symbolic_sizes_stay_symbols() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1).sum(0) + 1

    with recording() as recorded, torch.no_grad():
        compiled = torch.compile(function, dynamic=True)
        for length in (5, 6):
            x = torch.randn(length, 8)
            torch.testing.assert_close(compiled(x), function(x))
    assert len(recorded.all(Wrapper)) == 1, "the second length needs no new code"
    nodes = recorded.all(SchedulerNode)
    symbolic = [node for node in nodes if any(isinstance(size, str) for size in node.domain)]
    assert symbolic
    assert all(node.read_bytes is None for node in symbolic)
    (plan,) = recorded.all(MemoryPlan)
    assert plan.peak_bytes is None
    assert recorded.all(Warned) == []


@pytest.mark.parametrize(
    ("module", "name", "hook"),
    [
        (scheduler_nodes, "scheduler_node_record", "scheduler nodes"),
        (generation, "kernel_record", "generated code"),
    ],
)
def test_an_error_of_ours_is_said_and_breaks_nothing(
    module: object, name: str, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object) -> None:
        raise KeyError("a bug of ours")

    monkeypatch.setattr(module, name, fails)
    recorded, output = record(lambda x: x.sin() + 1, torch.ones(4))
    torch.testing.assert_close(output, torch.ones(4).sin() + 1)
    (warned,) = recorded.all(Warned)
    assert hook in warned.message
    assert "a bug of ours" in warned.message
    assert recorded.all(Wrapper)


def test_nothing_is_recorded_while_the_recorder_is_quiet() -> None:
    with harness.record(HOOKS, until="codegen") as recorded:
        recorded.recorder.quiet = True
        output = torch.compile(lambda x: torch.softmax(x, -1) * 2)(torch.ones(2, 4))
    torch.testing.assert_close(output, torch.full((2, 4), 0.5))
    assert recorded.records == []
