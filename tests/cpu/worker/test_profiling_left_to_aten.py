"""A graph that our engine leaves to ATen is timed, operation by operation; each is known by its
node, and so stands against eager's, and is compared with float64."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.records import Graph, Kernel, KernelPrecision, Warned
from tcw.compiler.trace.records.profile import CompiledStep, EagerOperation, Region
from tests.cpu.worker.recorded import Recorded, recorded

pytestmark = pytest.mark.long

MODEL = """
import torch


def model(x):
    y = torch.fft.fft(x) * 2
    y = torch.cond(x.sum() > 0, lambda y: y.add_(1) * 2, lambda y: y - 1, (y,))
    low, high = torch.aminmax(y.abs(), dim=-1)
    return torch.relu(high - low), y.t() * 3


example_inputs = (torch.randn(8, 64),)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("left")
    return recorded(
        folder,
        MODEL,
        engine="tcw",
        grad="no-grad",
        until="run",
        profile=True,
        rounds=3,
        verify=True,
    )


def test_each_operation_is_a_step_and_a_kernel(made: Recorded) -> None:
    assert any("runs on ATen" in warned.message for warned in made.all(Warned))
    (graph,) = (one for one in made.all(Graph) if one.kind == "lowered")
    steps = [step for step in made.all(CompiledStep) if step.graph]
    kernels = {one.id: one for one in made.all(Kernel)}
    assert {"aten._fft_r2c.default", "torch.ops.higher_order.auto_functionalized_v2"} <= {
        step.name for step in steps
    }
    nodes = {node.name: node for node in graph.nodes}
    for step in steps:
        assert (step.kind, step.time is not None) == ("aten", True)
        kernel = kernels[step.kernel]
        (name,) = kernel.origins
        assert nodes[name].target == step.name == kernel.name
        assert kernel.language == "aten"
        assert kernel.locations
    assert len({step.kernel for step in steps}) == len(steps)


def test_each_stands_against_the_operations_of_its_line(made: Recorded) -> None:
    steps = {step.id: step for step in made.all(CompiledStep)}
    operations = {operation.id: operation for operation in made.all(EagerOperation)}
    line = MODEL.splitlines().index("    y = torch.fft.fft(x) * 2") + 1
    found = {
        (
            region.locations[0].line - line,
            tuple(steps[id].name for id in region.steps),
            tuple(operations[id].operation for id in region.operations),
        )
        for region in made.all(Region)
        if any(steps[id].graph for id in region.steps)
    }
    fft, times, sub, relu = (f"aten.{name}" for name in ("_fft_r2c", "mul", "sub", "relu"))
    assert (0, (f"{fft}.default",), (f"{fft}.default",)) in found
    assert (0, (f"{times}.Tensor",), (f"{times}.Tensor",)) in found
    assert (3, (f"{sub}.Tensor",), (f"{sub}.Tensor",)) in found
    # views stand with the work of a call of their line, on both sides
    views = "aten.permute.default", "aten.t.default"
    assert (3, (f"{relu}.default", views[0]), (f"{relu}.default", views[1])) in found
    assert all(ours and theirs for _, ours, theirs in found), found


def test_each_is_compared_with_float64(made: Recorded) -> None:
    kernels = {kernel.id: kernel for kernel in made.all(Kernel)}
    found = {kernels[precision.kernel].name: precision for precision in made.all(KernelPrecision)}
    name = "auto_functionalized_v2"
    cond = found.pop(f"torch.ops.higher_order.{name}")
    assert cond.within is None
    assert cond.reason.endswith(f": {name} is a higher-order operation: it calls graphs of its own")
    assert "aten._fft_r2c.default" in found
    assert {name: one.reason for name, one in found.items() if not one.within} == {}
