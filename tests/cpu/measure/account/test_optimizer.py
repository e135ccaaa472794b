"""The optimizer's step, eager against compiled by our own engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from tcw.compiler.measure.account import optimizer
from tcw.compiler.measure.account.optimizer import Trained, optimizer_of, step_records_of
from tcw.compiler.measure.account.records import IdCounts
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import Twin
from tcw.compiler.measure.compiled.collected import Collected, RecordedModel
from tcw.compiler.trace.records import Record, Settings, Warned
from tcw.compiler.trace.records.profile import Account, CompiledStep, EagerOperation, Region
from tcw.workbench.worker.backends import compiled, register
from tcw.workbench.worker.unrecorded import host_of
from tests.cpu.measure.what_if.finished import Trace


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def _adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.1)


def _records(given: Callable[[nn.Module], Any]) -> tuple[list[Record], list[str], nn.Module]:
    torch._dynamo.reset()
    trace = Trace()
    settings = Settings(file=__file__, grad="train", engine="tcw")
    register(settings)
    model = Net()
    made = RecordedModel(
        "tcw", compiled(model, settings, "tcw"), [], Twin(model), Collected(), records=[]
    )
    inputs = InputSet((torch.randn(3, 4),))
    recorder = trace.of(settings)
    step = partial(compiled, settings=settings, engine="tcw")
    numbers = IdCounts(2, 3, 4)
    host = host_of(recorder)
    found = step_records_of(host, given(model), model, made, step, inputs, numbers)
    return found, [record.message for record in trace.records if isinstance(record, Warned)], model


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "ROUNDS", 4)


@pytest.mark.parametrize("given", [lambda model: _adam(model.parameters()), lambda model: _adam])
def test_both_sides_are_timed_and_the_model_is_as_before(given: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    wanted = [parameter.clone() for parameter in Net().parameters()]
    torch.manual_seed(0)
    made, warned, model = _records(given)
    assert warned == []
    accounts = [one for one in made if isinstance(one, Account)]
    assert [(one.side, one.phase) for one in accounts] == [("eager", "step"), ("compiled", "step")]
    assert all(one.measured.median > 0 for one in accounts)
    assert [line.name for line in accounts[0].lines] == ["operations"]
    assert {"kernels", "wrapper"} <= {line.name for line in accounts[1].lines}
    for before, after in zip(wanted, model.parameters(), strict=True):
        torch.testing.assert_close(after, before, rtol=0, atol=0)


def test_both_sides_stand_in_a_region_of_the_phase() -> None:
    made, _, _ = _records(lambda model: _adam)
    operations = [one for one in made if isinstance(one, EagerOperation)]
    steps = [one for one in made if isinstance(one, CompiledStep)]
    (region,) = (one for one in made if isinstance(one, Region))
    assert (region.label, region.phase) == ("Adam", "step")
    assert region.operations == tuple(f"e{2 + place}" for place in range(len(operations)))
    assert region.steps == tuple(f"s{3 + place}" for place in range(len(steps)))
    assert region.id == "r4"
    assert any("addcdiv" in operation.operation for operation in operations)
    assert {(operation.phase, operation.part) for operation in (*operations, *steps)} == {
        ("step", "optimizer")
    }
    assert "kernel" in {step.kind for step in steps} <= {"kernel", "aten"}
    assert all(operation.time is not None for operation in (*operations, *steps))
    assert region.eager is not None
    assert region.compiled is not None


def test_a_step_starts_from_the_same_each_time() -> None:
    model = Net()
    model(torch.ones(1, 4)).sum().backward()
    side = Trained(model, _adam(model.parameters()))
    side.optimizer.step()
    side.remember()
    side.optimizer.step()
    first = [parameter.detach().clone() for parameter in model.parameters()]
    for _ in range(2):
        side.rewind()
        side.optimizer.step()
    for one, other in zip(first, model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert {float(one["step"]) for one in side.optimizer.state.values()} == {2.0}


def test_an_optimizer_of_the_model_becomes_one_of_its_copy() -> None:
    model = Net()
    given = _adam(
        [{"params": model.first.parameters(), "lr": 0.5}, *[{"params": model.second.parameters()}]]
    )
    twin = Twin(model).model
    made = optimizer_of(given, model, twin)
    assert made is not given
    assert [group["lr"] for group in made.param_groups] == [0.5, 0.1]
    ours = {id(one) for group in made.param_groups for one in group["params"]}
    assert ours == {id(parameter) for parameter in twin.parameters()}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "says"),
    [(3, "`optimizer` is a int"), (lambda parameters: None, "which makes a NoneType")],
)
def test_what_is_no_optimizer_is_said(given: Any, says: str) -> None:
    found, (warned,), _ = _records(lambda _: given)
    assert found == []
    assert says in warned
