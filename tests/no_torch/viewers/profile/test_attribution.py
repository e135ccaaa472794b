from __future__ import annotations

import pytest

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import CompiledStep
from tests.no_torch import profiles
from tests.no_torch.profile_building import FILE
from tests.no_torch.viewers.profile.conftest import profiled


def test_a_kernel_of_several_lines_is_shown_whole_beside_each() -> None:
    one = profiled(profiles.block_profile())
    for line in (26, 27):
        cost = one.line_costs[FILE, line]
        assert cost.compiled == pytest.approx(31.3e-6)
        assert cost.own == 0
        assert cost.shared
    first = one.line_costs[FILE, 25]
    assert first.compiled == pytest.approx((26.5 + 31.3) * 1e-6)
    assert first.own == pytest.approx(26.5e-6)
    assert first.eager == pytest.approx((45.8 + 11.0 + 12.8) * 1e-6)


def test_own_time_adds_up_to_no_more_than_the_kernels() -> None:
    records = profiles.block_profile()
    one = profiled(records)
    own = sum(cost.own for cost in one.line_costs.values())
    steps = [step for step in records if isinstance(step, CompiledStep)]
    assert own <= sum(step.time.median for step in steps if step.time)


def test_lines_of_a_kernel_share_its_time() -> None:
    one = profiled(profiles.block_profile())
    cost = one.costs[refs.kernel("k0", 2)]
    assert cost.compiled == pytest.approx(26.5e-6)
    assert cost.shared
    assert one.costs[refs.kernel("k0")].own == pytest.approx(26.5e-6)
