"""A probe of a short call, which is first made once untimed, sees only the timed call."""

from __future__ import annotations

import torch

from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import PreparedRun, prepare
from tcw.compiler.measure.probes.call_rounds import CallRounds, CallSide, plan_of
from tcw.compiler.measure.probes.sides import EagerSide
from tcw.compiler.measure.rounds.team import Team


def test_a_dispatch_mode_times_the_call_and_not_what_prepares_it() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
    inputs = InputSet((torch.randn(4, 8),), {})
    eager = EagerSide(model, 1, on_device=False)
    eager.by_profiler = False

    def prepared() -> PreparedRun:
        return prepare(model, inputs, "no-grad")

    eager.describe(prepared())
    side = CallSide(prepared, {"probed": eager.probing})
    rounds = CallRounds({"eager": side}, Team(1))
    rounds.warm_up()
    rounds.run(plan_of(3))
    assert not eager.probe.differs
    for lap in rounds.laps["eager"]["probed"]:
        assert [reading.key for reading in lap.readings] == list(range(len(eager.probe.operations)))
