"""What runs outside all graphs, in a call under torch's profiler."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
import torch

from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs
from tcw.compiler.measure.probes.between import LOSS, EagerRun, in_rounds, is_composite, outside
from tcw.compiler.measure.probes.device_clock import DeviceClock, device_clock
from tcw.compiler.measure.probes.inductor_probe import InductorProbe
from tcw.compiler.measure.probes.profiler_trace import parse
from tests.no_torch.measure.probes.test_profiler_trace import EVENTS


class Broken(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.linear(x))
        return self.eager(h) * 2

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def eager(self, h: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(h, h.detach()).reshape(-1).sin()


class Profiled:
    """A training call of a model with a break, with its graphs under probes."""

    def __init__(self) -> None:
        model = Broken()
        compiled = torch.compile(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def call() -> None:
            outputs = compiled(torch.ones(4, 8))
            with torch.profiler.record_function(LOSS):
                loss = outputs.float().mean()
            loss.backward()
            optimizer.step()

        with inductor_graphs(keep_arguments=False) as graphs:
            call()
        call()
        self.probes = [InductorProbe(f"g{number}", graph) for number, graph in enumerate(graphs)]
        self.clocks: list[DeviceClock] = []
        for _ in range(2):
            with ExitStack() as stack:
                clock = stack.enter_context(device_clock(device=False))
                for number, probe in enumerate(self.probes):
                    stack.enter_context(probe.timing(clock, 100 * number))
                call()
            self.clocks.append(clock)
        self.runs = [outside(clock.trace) for clock in self.clocks]

    def of(self, part: str) -> list[tuple[str, str]]:
        return [(run.name, run.phase) for run in self.runs[0] if run.part == part]


@pytest.fixture(scope="module")
def profiled() -> Any:
    torch._dynamo.reset()
    return Profiled()


def test_the_code_of_a_break_is_there_and_what_graphs_run_is_not(profiled: Profiled) -> None:
    names = [run.name for run in profiled.runs[0] if run.part == "model"]
    forward = [name for name, phase in profiled.of("model") if phase == "forward"]
    # `linear` and `reshape` consist of other operations
    assert [name for name in forward if name not in ("aten.detach", "aten.t", "aten.view")] == [
        "aten.ones",
        "aten.mm",
        "aten.sin",
    ]
    assert not {"aten.relu", "aten.addmm", "aten.linear", "aten.reshape"} & set(names)
    backward = [name for name, phase in profiled.of("model") if phase == "backward"]
    assert "aten.cos" in backward


def test_loss_gradients_and_optimizer_are_told_apart(profiled: Profiled) -> None:
    loss = profiled.of("loss")
    assert ("aten.mean", "forward") in loss
    assert ("aten.ones_like", "backward") in loss
    assert ("aten.div", "backward") in loss
    assert {phase for _, phase in profiled.of("optimizer")} == {"step"}
    assert "aten.add_" in [name for name, _ in profiled.of("optimizer")]
    assert all(phase == "backward" for _, phase in profiled.of("gradients"))


def test_views_launch_nothing(profiled: Profiled) -> None:
    launches = {run.name: run.launches for run in profiled.runs[0]}
    assert launches["aten.t"] == launches["aten.view"] == 0
    assert launches["aten.sin"] == 1


def test_each_operation_has_a_time_in_each_call(profiled: Profiled) -> None:
    assert all(probe.steps for probe in profiled.probes)
    found = in_rounds(profiled.runs)
    assert len(found) == len(profiled.runs[0])
    assert all(len(one.ns) == 2 and min(one.ns) > 0 for one in found)


def test_an_operation_that_one_call_did_not_run_took_no_time_in_it() -> None:
    eager_run = EagerRun("aten.add", "model", "", 0, 5, 1)
    other = EagerRun("aten.mul", "model", "", 0, 7, 1)
    assert [
        (r.run.name, r.ns) for r in in_rounds([[eager_run], [eager_run, eager_run, other]])
    ] == [
        ("aten.add", (5, 5)),
        ("aten.add", (0, 5)),
        ("aten.mul", (0, 7)),
    ]


def test_on_a_device_an_operation_has_the_time_of_its_kernels() -> None:
    (run,) = outside(parse(EVENTS, clock=1_000_000), device=True)
    assert (run.name, run.ns, run.kernels, run.host_ns) == ("aten.add", 7000, ("add",), 9000)


@pytest.mark.parametrize(
    ("name", "composite"),
    [
        ("aten::linear", True),
        ("aten::reshape", True),
        ("aten::to", True),
        ("aten::scaled_dot_product_attention", True),
        ("aten::mean", False),  # but for a form that names dimensions
        ("aten::max", False),  # but for that of two tensors
        ("aten::mm", False),
        ("no::such", False),
    ],
)
def test_composites_are_those_that_torch_runs_as_other_operations(
    name: str, composite: bool
) -> None:
    assert is_composite(name) == composite
