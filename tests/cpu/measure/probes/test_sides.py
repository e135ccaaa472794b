"""Matches what torch's profiler saw with the operations of the described call."""

from __future__ import annotations

import torch

from tcw.compiler.measure.probes.between import EagerRun, outside
from tcw.compiler.measure.probes.device_clock import device_clock
from tcw.compiler.measure.probes.eager_probe import EagerProbe
from tcw.compiler.measure.probes.sides import readings_of
from tcw.compiler.trace.records.profile import EagerOperation


def model(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    weighted = x * weight
    weighted /= weighted.sum(-1, keepdim=True)  # autograd keeps what this overwrites
    contiguous = weighted.t().contiguous()
    return contiguous.sum() + x.cumsum(0).sum()


def test_copies_that_autograd_makes_and_gradients_that_it_adds_up_are_timed() -> None:
    x, weight = torch.rand(4, 4, requires_grad=True), torch.rand(4, 4)
    seed = torch.ones(())
    probe = EagerProbe(model, 1)
    with probe.describing():
        with probe.during("forward"):
            result = model(x, weight)
        with probe.during("backward"):
            result.backward(seed)
    x.grad = None
    with device_clock(device=False) as clock:
        clock.begin()
        model(x, weight).backward(seed)
        clock.end()
    readings = readings_of(probe.operations, outside(clock.trace))
    seen = {probe.operations[reading.key].id: reading for reading in readings}
    working = [operation for operation in probe.operations if operation.launches]
    assert [one.operation for one in working if one.id not in seen] == []
    starts = [reading.start for reading in readings]
    copy, divided = (
        next(
            at
            for at, reading in enumerate(readings)
            if probe.operations[reading.key].operation == name
        )
        for name in ("aten.clone.default", "aten.div_.Tensor")
    )
    assert copy + 1 == divided
    assert starts[divided] <= starts[copy] <= starts[divided + 1]


def _run(name: str, start: int, ns: int, *inner: EagerRun, launches: int = 1) -> EagerRun:
    return EagerRun(name, "model", "", start, ns, launches, inner=inner)


def _operation(name: str, launches: int = 1) -> EagerOperation:
    return EagerOperation(id="", call=1, operation=name, launches=launches)


def test_a_copy_inside_of_another_operation_is_not_that_of_a_later_line() -> None:
    operations = [
        _operation(name)
        for name in ("aten.clone.default", "aten.mul_.Tensor", "aten.clone.default")
    ]
    runs = [
        _run("aten.mul_", 10, 50, _run("aten.empty_like", 11, 4), _run("aten.clone", 12, 30)),
        _run("aten.clone", 70, 5),
    ]
    found = {reading.key: (reading.start, reading.ns) for reading in readings_of(operations, runs)}
    assert found == {0: (12, 30), 1: (10, 20), 2: (70, 5)}


def test_a_view_that_no_mode_sees_is_passed_over() -> None:
    operations = [_operation("aten.detach.default", 0), _operation("aten.add.Tensor")]
    runs = [_run("aten.alias", 1, 1, launches=0), _run("aten.add_", 3, 2)]
    assert [(reading.key, reading.start) for reading in readings_of(operations, runs)] == [(1, 3)]


def test_where_other_operations_ran_they_are_told_by_their_number() -> None:
    operations = [_operation("aten.add.Tensor"), _operation("aten.mul.Tensor")]
    runs = [_run("aten.sin", 1, 1), _run("aten.add", 2, 2), _run("aten.mul", 5, 3)]
    assert [(reading.key, reading.start) for reading in readings_of(operations, runs)] == [
        (0, 2),
        (1, 5),
    ]
