"""The time of a check of guards, as torch measures it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tcw.compiler.control.hooks import resolve
from tcw.compiler.measure.compiled import guard_cost
from tcw.compiler.measure.compiled.guard_cost import HOOK, guard_costs

pytestmark = pytest.mark.usefixtures("torchs_profile_of_guards")


@pytest.mark.parametrize("need", HOOK.needs)
def test_torch_has_what_it_needs(need: str) -> None:
    resolve(need)


def test_each_frame_that_is_compiled_has_its_cost() -> None:
    torch._dynamo.reset()

    def outer(x: torch.Tensor, times: int) -> torch.Tensor:
        x = x * times
        torch._dynamo.graph_break()
        return x + 1

    from torch._dynamo import guards

    before = guards.profile_guard_manager
    with guard_costs() as costs:
        torch.compile(outer, backend="eager")(torch.ones(3), 2)
    assert guards.profile_guard_manager is before
    assert not costs.missing
    assert list(costs.found) == ["0/0", "1/0"]
    for cost in costs.found.values():
        assert 0 < cost.median < 1
        assert cost.runs >= 5


def test_emptying_the_caches_takes_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's figure is of the check alone: the clock decides how many there are."""
    now = 0.0

    def profile(*_: object) -> float:
        nonlocal now
        now += 0.03
        return 3.0

    monkeypatch.setattr(guard_cost, "perf_counter", lambda: now)
    found = guard_cost._measured(profile, None, None)
    assert found.median == pytest.approx(3e-6)
    assert found.runs == 7


def test_a_torch_without_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = replace(HOOK, needs=("torch._dynamo.guards:no_such_function",))
    monkeypatch.setattr(guard_cost, "HOOK", lacking)
    with guard_costs() as costs:
        pass
    assert "no_such_function" in costs.missing


def test_a_measurement_that_fails_is_none_of_the_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()

    def fails(*_: object) -> None:
        raise ValueError("no clock")

    monkeypatch.setattr(guard_cost, "_measured", fails)
    with guard_costs() as costs:
        answer = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert answer.tolist() == [2.0, 2.0]
    assert costs.missing == "ValueError: no clock"
    assert not costs.found
