"""Steps of compiled graphs on a real GPU, by the device's own clock."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tcw.compiler.measure.compiled.inductor_graphs import inductor_graphs  # noqa: E402
from tcw.compiler.measure.probes.between import LOSS, outside  # noqa: E402
from tcw.compiler.measure.probes.clock import HostClock, Reading  # noqa: E402
from tcw.compiler.measure.probes.device_clock import DeviceClock, device_clock  # noqa: E402
from tcw.compiler.measure.probes.inductor_probe import InductorProbe  # noqa: E402
from tcw.compiler.measure.probes.steps import GraphStep  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(1024, 4096)
        self.second = torch.nn.Linear(4096, 1024)

    def forward(self, x: Any) -> Any:
        h = torch.nn.functional.gelu(self.first(x))
        torch._dynamo.graph_break()
        return torch.softmax(self.second(h), -1)


class Probed:
    """A compiled training call, warm, with a probe for each of its graphs."""

    def __init__(self, model: Any, **options: Any) -> None:
        torch._dynamo.reset()
        self.model = model.cuda()
        self.x = torch.randn(2048, 1024, device="cuda")
        self.compiled = torch.compile(self.model, **options)
        with inductor_graphs(keep_arguments=False) as graphs:
            self.call()
        for _ in range(4):
            self.call()
        torch.cuda.synchronize()
        self.probes: list[InductorProbe] = [InductorProbe(f"g{i}", g) for i, g in enumerate(graphs)]

    def call(self) -> None:
        outputs = self.compiled(self.x)
        if torch.is_grad_enabled():
            with torch.profiler.record_function(LOSS):
                loss = outputs.float().square().mean()
            loss.backward()
            self.model.zero_grad(set_to_none=False)

    def timed(self) -> DeviceClock:
        with device_clock() as clock:
            self.under(clock)
        return clock

    def under(self, clock: Any) -> None:
        with ExitStack() as stack:
            for number, probe in enumerate(self.probes):
                stack.enter_context(probe.timing(clock, 1000 * number))
            self.call()


@pytest.fixture(scope="module")
def probed() -> Probed:
    return Probed(Net())


def by_key(readings: list[Reading]) -> dict[int, Reading]:
    return {reading.key: reading for reading in readings}


def test_every_step_has_its_kernels_in_the_forward_and_on_autograd_s_thread(
    probed: Probed,
) -> None:
    clock = probed.timed()
    found = by_key(clock.readings())
    assert len(probed.probes) == 4
    threads = {event.thread for event in clock.trace.events() if event.key is not None}
    assert len(threads) == 2, "the backward runs on a thread of autograd's"
    for number, probe in enumerate(probed.probes):
        whole = found[1000 * number]
        steps = [found[1000 * number + 1 + step.index] for step in probe.steps]
        for step, reading in zip(probe.steps, steps, strict=True):
            print(f"{step.name:60} {reading.ns / 1e3:9.1f} us {reading.launches} {reading.kernels}")
            assert reading.launches >= 1, step
            assert reading.ns > 0, step
            if step.kind == "kernel":
                assert step.name in reading.kernels
            assert reading.host_ns is not None
            assert reading.host_ns > 0
        print(f"whole: {whole.ns / 1e3:.1f} us, host {(whole.host_ns or 0) / 1e3:.1f} us")
        assert whole.launches == sum(step.launches for step in steps)
        assert whole.ns == sum(step.ns for step in steps)


def test_the_device_s_time_is_that_of_its_events(probed: Probed) -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seconds, busy = [], []
    for _ in range(5):
        torch.cuda.synchronize()
        start.record()
        probed.call()
        end.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3)
        busy.append(probed.timed().busy_ns() / 1e9)
    print(f"call {sorted(seconds)[2] * 1e3:.3f} ms, busy {sorted(busy)[2] * 1e3:.3f} ms")
    assert 0 < sorted(busy)[2] <= sorted(seconds)[2] * 1.25


def test_what_lies_outside_of_all_graphs_has_its_kernels(probed: Probed) -> None:
    clock = probed.timed()
    runs = outside(clock.trace, device=True)
    for run in runs:
        print(run.part, run.phase, run.name, run.ns, run.launches, run.kernels)
    parts = {run.part for run in runs if run.launches}
    assert {"loss", "gradients"} <= parts
    loss = [run for run in runs if run.part == "loss" and run.phase == "forward"]
    assert sum(run.ns for run in loss) > 0
    # all that the device did is in a graph or outside all
    in_graphs = sum(by_key(clock.readings())[1000 * n].ns for n in range(len(probed.probes)))
    everything = sum(work.ns for work in clock.trace.work)
    assert in_graphs + sum(run.ns for run in runs) >= 0.98 * everything


def test_the_host_s_clock_reads_how_long_a_launch_takes(probed: Probed) -> None:
    clock = HostClock()
    probed.under(clock)
    torch.cuda.synchronize()
    found = by_key(clock.readings())
    for number, probe in enumerate(probed.probes):
        assert all(found[1000 * number + 1 + step.index].ns > 0 for step in probe.steps)


def test_a_cuda_graph_is_one_step_and_goes_on_to_be_replayed() -> None:
    with torch.no_grad():
        probed = Probed(torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()),
                        mode="reduce-overhead")  # fmt: skip
        (probe,) = probed.probes
        before = probed.compiled(probed.x).clone()
        clock = probed.timed()
        after = probed.compiled(probed.x).clone()
    assert torch.equal(before, after)
    found = by_key(clock.readings())
    print(probe.steps, probe.unmeasured, clock.readings())
    assert [step.name for step in probe.steps] == ["partition_0"]
    assert found[1].launches >= 2, "all kernels of the graph, by one launch"
    assert found[0].ns == found[1].ns > 0


def test_observing_sees_tensors_where_they_are() -> None:
    probed = Probed(Net())  # its own: what another test compiled made Dynamo forget the shared one
    seen: list[tuple[str, set[str]]] = []

    def see(step: GraphStep, tensors: Mapping[str, Any]) -> None:
        seen.append((step.name, {tensor.device.type for tensor in tensors.values()}))

    with ExitStack() as stack:
        for probe in probed.probes:
            stack.enter_context(probe.observing(see))
        probed.call()
    names = sorted(step.name for probe in probed.probes for step in probe.steps)
    assert sorted(name for name, _ in seen) == names
    assert {"cuda"} == set().union(*(devices for _, devices in seen))
