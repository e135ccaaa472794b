"""Records of a profile from given readings: a GPU's clock, disturbed runs."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from tcw.compiler.measure.account.readings import Measured, SideRounds
from tcw.compiler.measure.account.records import IdCounts, _exceeded, records
from tcw.compiler.measure.compiled.guard_cost import GuardCosts
from tcw.compiler.measure.probes.between import EagerRun
from tcw.compiler.measure.probes.clock import Reading
from tcw.compiler.measure.probes.laps import Lap, quiet_rounds
from tcw.compiler.measure.probes.steps import GraphStep
from tcw.compiler.measure.regions.origins import Origins
from tcw.compiler.trace.records import Timed
from tcw.compiler.trace.records.profile import (
    Account,
    CallProfile,
    CompiledStep,
    EagerOperation,
    Region,
)

MS = 1_000_000


class Probe:
    """Readings of a graph with one kernel."""

    graph = "0/0/forward"
    steps = (GraphStep(0, "kernel", "triton_poi_fused_add_0"),)

    def timing(self, *_: Any) -> Any:
        return nullcontext()

    observing = timing


def reading(key: int, device_ms: float, host_ms: float, launches: int = 1) -> Reading:
    names = ("triton_poi_fused_add_0",) * launches
    return Reading(key, 0, int(device_ms * MS), launches, names, int(host_ms * MS))


def lap(seconds: float, *readings: Reading, busy: float = 0.0, preempted: int = 0) -> Lap:
    return Lap({"": seconds}, 0, list(readings), preempted=preempted, busy={"": busy})


def on_a_gpu() -> Measured:
    """The GPU works 2 of 5 ms in eager, and 1 of 4 ms compiled: the host takes the rest."""
    operation = EagerOperation(id="e0", call=1, operation="aten.add.Tensor", launches=1)
    eager = [lap(0.006, reading(0, 2.0, 0.1), busy=0.002) for _ in range(3)]
    compiled = [
        lap(0.005, reading(0, 1.0, 0.5), reading(1, 1.0, 0.1), busy=0.001) for _ in range(3)
    ]
    return Measured(
        call=1,
        device="cuda",
        probes=[Probe()],
        bases=[0],
        end=2,
        origins=Origins([]),
        canonical=str,
        operations=[operation],
        laps={
            "eager": {"plain": [lap(0.005)] * 3, "probed": eager},
            "compiled": {"plain": [lap(0.004)] * 3, "probed": compiled},
        },
        guards=GuardCosts({"0/0": Timed(median=1e-4, spread=1e-6, runs=5)}),
    )


def test_on_a_gpu_the_account_is_the_devices() -> None:
    found = list(records(on_a_gpu(), IdCounts()))
    eager, compiled = (one for one in found if isinstance(one, Account))
    lines = {line.name: line.time.median for line in compiled.lines}
    assert lines == pytest.approx({"kernels": 0.001, "idle": 0.003})
    assert compiled.remainder == pytest.approx(0.0)
    assert {line.name: line.time.median for line in eager.lines} == pytest.approx(
        {"operations": 0.002, "idle": 0.003}
    )
    (step,) = (one for one in found if isinstance(one, CompiledStep))
    assert (step.launches, step.kernels) == (1, ("triton_poi_fused_add_0",))
    assert step.time is not None
    assert step.host is not None
    assert (step.time.median, step.host.median) == pytest.approx((0.001, 0.0001))
    (head,) = (one for one in found if isinstance(one, CallProfile))
    assert (head.clock, head.rounds, head.speedup) == ("device", 3, pytest.approx(1.25))


def test_a_frame_checks_its_guards_once_per_forward() -> None:
    """Its backward runs as often, and checks none."""
    backward = Probe()
    backward.graph = "0/0/backward"
    readings = [reading(key, 1.0, 0.0, launches=0) for key in (0, 0, 2)]
    readings += [reading(key, 0.5, 0.0) for key in (1, 1, 3)]
    found = on_a_gpu()
    found.device, found.probes, found.bases, found.end = "cpu", [Probe(), backward], [0, 2], 4
    found.laps["compiled"]["probed"] = [lap(0.005, *readings)] * 3
    found.guards.warm = found.guards.found
    accounts = [record for record in records(found, IdCounts()) if isinstance(record, Account)]
    (guards,) = (line for line in accounts[-1].lines if line.name == "guards")
    assert (guards.time.median, guards.what) == (pytest.approx(2e-4), "of 2 frames")


def test_on_a_busy_machine_only_whole_calls_are_recorded() -> None:
    busy = on_a_gpu()
    busy.contended = True
    (head,) = records(busy, IdCounts())
    assert isinstance(head, CallProfile)
    assert head.contended
    assert (head.eager.median, head.compiled.median) == (0.005, 0.004)


def test_ids_go_on_in_the_next_profile_of_a_trace() -> None:
    numbers = IdCounts()
    first, second = (list(records(on_a_gpu(), numbers)) for _ in range(2))
    for kind in (EagerOperation, CompiledStep, Region):
        ids = [one.id for one in (*first, *second) if isinstance(one, kind)]
        assert len(set(ids)) == len(ids)


def test_rounds_that_were_disturbed_are_left_out() -> None:
    quiet, slow = lap(0.001), lap(0.009, preempted=1)
    plain, probed = [quiet, slow, *[quiet] * 12], [quiet, quiet, slow, slow, *[quiet] * 10]
    sides: Any = {"eager": {"plain": plain, "probed": probed}}
    kept = quiet_rounds(sides)["eager"]
    assert [one.seconds for one in kept["plain"]] == [0.001] * 13
    assert [one.seconds for one in kept["probed"]] == [0.001] * 12


def test_of_few_undisturbed_rounds_the_quieter_half_is_kept() -> None:
    laps = [lap(0.001), *(lap(0.01 * count, preempted=count) for count in range(1, 20))]
    kept = quiet_rounds({"eager": {"plain": laps}})["eager"]["plain"]
    assert [one.preempted for one in kept] == list(range(10))


def test_where_all_are_disturbed_the_least_are_kept() -> None:
    laps = [lap(0.01 * count, preempted=count) for count in range(1, 11)]
    assert len(quiet_rounds({"eager": {"plain": laps}})["eager"]["plain"]) == 7


def test_what_runs_where_there_is_no_graph_at_all() -> None:
    """A frame that Dynamo leaves to Python, such as one that calls an `nn.LSTM`: keys count from
    0."""
    run = EagerRun("aten.add", "model", "", start=0, ns=2 * MS, launches=1)
    one = lap(0.005)
    one.eager = [run]
    side = SideRounds({"plain": [lap(0.005)], "probed": [lap(0.005)], "between": [one]}, end=0)
    assert [found.run.name for found in side.between] == ["aten.add"]
    assert side.seconds == {0: [0.002]}
    assert SideRounds({"plain": [one], "probed": [one]}).between == []


@pytest.mark.parametrize(
    ("device", "remainder", "exceeded"),
    [("cpu", -1.3, 2.3), ("cpu", -0.9, None), ("cpu", 0.9, None), ("cuda", -1.3, None)],
)
def test_parts_that_exceed_the_call_by_far_count_for_nothing(
    device: str, remainder: float, exceeded: float | None
) -> None:
    whole = Timed(median=1.0, spread=0.01, runs=9)
    accounts = [
        Account(side=side, call=1, measured=whole, lines=(), remainder=lost, phase=phase)
        for side, lost, phase in (("eager", 0.0, ""), ("compiled", remainder, ""))
    ]
    of_a_phase = replace(accounts[0], phase="backward", remainder=-5.0)
    measured = SimpleNamespace(device=device)
    found = _exceeded(measured, [*accounts, of_a_phase])  # type: ignore[arg-type]
    assert found == (pytest.approx(exceeded) if exceeded else None)
