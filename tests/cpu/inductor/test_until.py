"""Recordings that end before the build: no compiler starts, and the results are correct."""

from __future__ import annotations

import subprocess

import pytest
import torch

from tcw.compiler.protocol.stages import STAGES, reached
from tcw.compiler.trace.records import (
    Decided,
    Kernel,
    Lowered,
    MemoryPlan,
    Record,
    Stage,
    Wrapper,
)
from tests.cpu.inductor.models import Softmax, Transformer
from tests.cpu.inductor.recorded import record, recording

MADE_BY: dict[type[Record], Stage] = {
    Lowered: "lowering",
    Decided: "fusion",
    MemoryPlan: "memory",
    Kernel: "codegen",
    Wrapper: "codegen",
}


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every program that is started inside."""
    started: list[str] = []
    popen = subprocess.Popen.__init__

    def init(self, args, *rest, **kwargs):
        started.append(args if isinstance(args, str) else " ".join(map(str, args)))
        popen(self, args, *rest, **kwargs)

    monkeypatch.setattr(subprocess.Popen, "__init__", init)
    return started


def _asks_for_version(command: str) -> bool:
    """torch determines once per process which compiler it writes code for."""
    return command.split()[1:] in (["--version"], ["-v"])


@pytest.mark.parametrize("until", ["lowering", "fusion", "memory", "codegen"])
def test_a_recording_ends_where_it_was_asked_to(until: Stage, commands: list[str]) -> None:
    model, x = Softmax(), torch.randn(4, 8, 16)
    recorded, output = record(model, x, until=until)
    torch.testing.assert_close(output, model(x))
    for kind, stage in MADE_BY.items():
        assert bool(recorded.all(kind)) == reached(stage, until), (kind, until)
    compilers = [command for command in commands if "++" in command or "clang" in command]
    assert [command for command in compilers if not _asks_for_version(command)] == []


def test_gradients_are_right() -> None:
    torch.manual_seed(0)
    model, x = Transformer(1), torch.randn(2, 8, 32)
    model(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    with recording("lowering"):
        torch.compile(model)(x).sum().backward()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_later_calls_and_mutation_work() -> None:
    def function(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.add_(x.sum())
        return torch.mm(x, x) + torch.mm(x, x.t()) * total

    total = torch.zeros(())
    with recording("codegen"), torch.no_grad():
        compiled = torch.compile(function)
        for number in (1, 2, 3):
            x = torch.full((4, 4), float(number))
            before = total.clone()
            torch.testing.assert_close(compiled(x, total), function(x, before))
    assert total.item() == 16 * (1 + 2 + 3)


def test_settings_and_functions_are_as_before() -> None:
    from torch._functorch import config as functorch_config
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering
    from torch._inductor.scheduler import Scheduler

    def state() -> tuple[object, ...]:
        return (
            config.fx_graph_cache,
            functorch_config.enable_autograd_cache,
            config.cpp.vec_isa_ok,
            GraphLowering.compile_to_module,
            GraphLowering.run_node,
            vars(Scheduler)["can_fuse"],
        )

    before = state()
    with recording("codegen"):
        assert config.fx_graph_cache is False
    assert state() == before


def test_building_is_left_alone() -> None:
    from torch._inductor.graph import GraphLowering

    before = GraphLowering.compile_to_module
    for until in STAGES[STAGES.index("build") :]:
        with recording(until):
            assert GraphLowering.compile_to_module is before
