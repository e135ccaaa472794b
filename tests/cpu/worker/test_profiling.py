"""A profile of a recording, from the file to its records: with our own engine, which compiles fast,
and once with both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import Ceilings, Failure, Graph, Kernel, Speed, Warned
from tcw.compiler.trace.records.profile import (
    Account,
    CallProfile,
    CallTimeline,
    CompiledStep,
    EagerOperation,
    Region,
)
from tests.cpu.chances import by_chance
from tests.cpu.worker.recorded import Recorded, recorded

MODEL = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(64), nn.Linear(64, 64)

    def forward(self, x):
        return x + F.gelu(self.up(self.norm(x)))


torch.manual_seed(0)
model = nn.Sequential(Layer(), Layer())
example_inputs = [(torch.randn(128, 64),), (torch.randn(32, 64),)]
"""
LINE = 13
"""Of the layer's sum."""

BREAK = """
import torch


@torch.compiler.disable
def between(y):
    return torch.sort(y)[0]


def model(x):
    return torch.relu(between(torch.softmax(x, -1))) + 1


example_inputs = (torch.randn(64, 64),)
"""

SLOW = """
import time
import torch


@torch.library.custom_op("planted::wait", mutates_args=())
def wait(x: torch.Tensor, seconds: float) -> torch.Tensor:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
    return x.clone()


@wait.register_fake
def _(x, seconds):
    return torch.empty_like(x)


def model(x):
    for _ in range(4):
        x = torch.relu(x @ x)
    x = wait(x, 0.0011 if torch.compiler.is_compiling() else 0.0001)
    return torch.softmax(x, -1) + wait(x, 0.0089)


example_inputs = (torch.randn(64, 64),)
"""
SLOW_LINE = SLOW[: SLOW.index("0.0011")].count("\n") + 1


CACHES = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.past = None, []

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(64.0).cos()
        if len(self.past) < 2:
            self.past.append(x.sin())
        return torch.softmax(torch.cat(self.past).sum(0) * x * self.table, -1)


model = Model()
example_inputs = (torch.randn(64, 64),)
"""


def profiled(folder: Path, text: str, **settings: object) -> Recorded:
    settings = {"engine": "tcw", "rounds": 5, "grad": "no-grad", **settings}
    return recorded(folder, text, profile=True, until="run", **settings)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """With a cache folder of its own: it measures the machine's ceilings."""
    folder = tmp_path_factory.mktemp("training")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        return profiled(folder, MODEL, grad="train", profiled_call=1)


def check(found: Recorded) -> None:
    """What holds for every profile."""
    (head,) = found.all(CallProfile)
    steps = {compiled_step.id: compiled_step for compiled_step in found.all(CompiledStep)}
    operations = {operation.id: operation for operation in found.all(EagerOperation)}
    in_regions = [id for region in found.all(Region) for id in (*region.steps, *region.operations)]
    assert sorted(in_regions) == sorted([*steps, *operations])
    assert len({one.id for one in found.all(Region)}) == len(found.all(Region))
    kernels = {kernel.id for kernel in found.all(Kernel)}
    for step in steps.values():
        assert step.time is not None
        assert step.kernel in kernels if step.kind != "eager" else not step.graph
    for region in found.all(Region):
        assert region.label
        assert {steps[id].phase for id in region.steps} <= {region.phase}
        assert (region.eager is None, region.compiled is None) == (
            not region.operations,
            not region.steps,
        )
        assert region.noise > 0
    for account in found.all(Account):
        lines = sum(line.time.median for line in account.lines)
        assert lines + account.remainder == pytest.approx(account.measured.median)
    for timeline in found.all(CallTimeline):
        known = steps if timeline.side == "compiled" else operations
        assert timeline.moments
        assert {moment.of for moment in timeline.moments} <= known.keys()
    assert {call_timeline.side for call_timeline in found.all(CallTimeline)} == {
        "eager",
        "compiled",
    }
    assert not head.compiled_again
    assert head.rounds >= 3


def test_a_training_call_is_taken_apart_by_phase(training: Recorded) -> None:
    check(training)
    (head,) = training.all(CallProfile)
    assert head.what == "forward + backward"
    assert {step.phase for step in training.all(CompiledStep)} == {"forward", "backward"}
    accounts = [(account.side, account.phase) for account in training.all(Account)]
    assert sorted(accounts) == sorted(
        (side, phase) for side in ("eager", "compiled") for phase in ("", "forward", "backward")
    )
    assert head.eager_saved_bytes is not None
    assert head.compiled_saved_bytes is not None
    loss = {operation.part for operation in training.all(EagerOperation)}
    assert {"model", "loss"} <= loss
    assert {step.part for step in training.all(CompiledStep) if step.kind == "eager"} >= {"loss"}


def test_layers_have_regions_of_their_own(training: Recorded) -> None:
    """Line 13 holds a product, a GELU and a sum, in two layers."""
    forward = [one for one in training.all(Region) if one.phase == "forward" and one.steps]
    for region in forward:
        instances = {path.split(".")[0] for path in region.modules}
        assert len(instances) <= 2, region
    products = [one for one in forward if one.label == "linear"]
    assert [product.modules for product in products] == [("0.up",), ("1.up",)]
    assert all(place.line == LINE for product in products for place in product.locations)


def test_every_kernel_of_the_call_is_a_step(training: Recorded) -> None:
    """The compile of the second input set made other graphs, which the call did not run."""
    graphs = {graph.id for graph in training.all(Graph)}
    ran = {step.graph for step in training.all(CompiledStep) if step.graph}
    assert ran
    assert ran < graphs
    called = {step.kernel for step in training.all(CompiledStep)}
    own = {
        kernel.id for kernel in training.all(Kernel) if kernel.graph.removesuffix("/lowered") in ran
    }
    assert own == called - {""}


def test_the_recording_has_its_speed_and_the_machine_its_ceilings(training: Recorded) -> None:
    (speed,) = training.all(Speed)
    assert speed.pairs == len(speed.sets) * speed.sets[0].pairs
    assert speed.compile_seconds > 0
    (ceilings,) = training.all(Ceilings)
    assert not ceilings.kept


def test_caches_that_fill_are_full_when_a_call_is_measured(tmp_path: Path) -> None:
    found = profiled(tmp_path, CACHES)
    check(found)
    (head,) = found.all(CallProfile)
    assert not head.unmeasured
    assert {step.graph for step in found.all(CompiledStep)} == {"0/2/inference"}
    operations = {operation.operation for operation in found.all(EagerOperation)}
    assert "aten.cat.default" in operations
    assert "aten.sin.default" not in operations
    assert any(region.steps and region.operations for region in found.all(Region))


@pytest.mark.long
def test_another_call_is_taken_apart(tmp_path: Path) -> None:
    found = profiled(tmp_path, MODEL, profiled_call=2)
    check(found)
    assert {region.call for region in found.all(Region)} == {2}
    shapes = {
        tensor.shape for operation in found.all(EagerOperation) for tensor in operation.outputs
    }
    assert (32, 64) in shapes
    assert (128, 64) not in shapes


@pytest.mark.long
def test_what_runs_between_graphs_is_a_step_of_its_line(tmp_path: Path) -> None:
    found = profiled(tmp_path, BREAK, engine="both")
    assert len(found.all(CallProfile)) == 2
    sorts = [step for step in found.all(CompiledStep) if step.name == "aten.sort"]
    assert [(sort.kind, sort.graph, sort.part) for sort in sorts] == [("eager", "", "model")] * 2
    for sort in sorts:
        (region,) = (region for region in found.all(Region) if sort.id in region.steps)
        assert [place.line for place in region.locations] == [7]
        assert region.operations
    kinds = {step.kind for step in found.all(CompiledStep)}
    assert kinds == {"kernel", "eager"}
    for account in found.all(Account):
        if account.side == "compiled":
            assert {"kernels", "eager", "guards"} <= {line.name for line in account.lines}


def test_a_call_that_is_not_there_is_said_before_anything_is_compiled(tmp_path: Path) -> None:
    found = profiled(tmp_path, MODEL, profiled_call=3)
    assert found.failure.message == "there is no call 3 to profile: the file has 2 input sets"
    assert not found.all(Graph)


@pytest.mark.long
def test_a_script_is_profiled_by_its_first_call(tmp_path: Path) -> None:
    script = "import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(2)))\n"
    found = profiled(tmp_path, script)
    assert not found.all(Failure)
    (head,) = found.all(CallProfile)
    assert head.call == 1
    assert any("is a script" in warned.message for warned in found.all(Warned))


def test_a_model_that_raises_on_a_later_run_costs_the_profile_alone(tmp_path: Path) -> None:
    text = """
import torch
calls = 0

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def count(*_):
    global calls
    calls += 1
    if calls > 3:
        raise ValueError("enough")

model = Model()
model.register_forward_pre_hook(torch.compiler.disable(count))
example_inputs = (torch.ones(4),)
"""
    found = profiled(tmp_path, text)
    assert found.end.status == "ok"
    assert not found.all(CallProfile)
    said = [warned.message for warned in found.all(Warned) if warned.asked]
    assert any("was not profiled: ValueError: enough" in one for one in said), said


def test_an_injected_slow_down_of_a_tenth_is_found(tmp_path: Path) -> None:
    """The compiled call waits a millisecond of ten in one step, with all else as long as before."""
    made: list[Recorded] = []

    def worst(before: int) -> Region:
        folder = tmp_path / str(before)
        folder.mkdir()
        made.append(profiled(folder, SLOW, rounds=10 * (before + 1)))
        lost = [region for region in made[-1].all(Region) if region.difference > region.noise]
        found = max(lost, key=lambda one: one.difference, default=None)
        assert found is not None, made[-1].all(Region)
        assert [place.line for place in found.locations] == [SLOW_LINE], lost
        return found

    assert by_chance(worst).difference == pytest.approx(1e-3, rel=0.5)
    for one in made:
        check(one)
