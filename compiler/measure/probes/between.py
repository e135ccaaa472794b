"""What a compiled call runs in eager, outside all graphs.

Code between graph breaks, the loss, gradients that autograd accumulates into parameters, an
optimizer. Read from torch's profiler (`device_clock`), excluding the ranges that mark the graphs'
probes. Operations are those below autograd, as a `TorchDispatchMode` sees them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from tcw.compiler.measure.probes.profiler_trace import RANGE, HostEvent, ProfilerTrace
from tcw.compiler.measure.work.operations import VIEWS
from tcw.compiler.trace.records.profile import CallPhase

StepPart = Literal["model", "loss", "gradients", "optimizer"]

LOSS = f"{RANGE}loss"
"""The range around the computation of the loss."""
_OPERATION = re.compile(r"(?!autograd::|profiler::)(\w+)::([\w.]+)$")
_NODE = "autograd::engine::evaluate_function: "
_GRADIENTS = "torch::autograd::AccumulateGrad"
_OTHER_FORM = re.compile(r"(^|_)out$|names|[dD]imname")
_OPTIMIZER = re.compile(r"Optimizer\.(step|zero_grad)#")


@dataclass(frozen=True, slots=True)
class EagerRun:
    """One operation that ran outside all graphs, or that a graph called."""

    name: str
    """`aten.add`: the profiler does not report overloads."""
    part: StepPart
    phase: CallPhase
    """"" outside training, as far as the trace shows."""
    start: int
    """Nanoseconds, as `perf_counter_ns`."""
    ns: int
    """Host time; on a device, the time of its kernels."""
    launches: int
    kernels: tuple[str, ...] = ()
    host_ns: int | None = None
    events: float = 0.0
    """Events that the profiler wrote meanwhile: those below it, and half of its own."""
    inner: tuple[EagerRun, ...] = ()
    """Operations that it runs itself, on a CPU. If autograd runs one of them, for example to keep a
    copy of what an in-place operation overwrites, a `TorchDispatchMode` sees that operation
    separately."""

    def without(self, event_ns: float) -> EagerRun:
        """This run without the profiler's overhead per event, which is not the host's time. At
        least half is left: if little is done, an event takes less than usual."""
        own = round(self.events * event_ns)
        host = self.ns if self.host_ns is None else self.host_ns
        host = max(host // 2, host - own)
        if self.host_ns is not None:
            return replace(self, host_ns=host)
        return replace(
            self, ns=host, inner=tuple(eager_run.without(event_ns) for eager_run in self.inner)
        )


def outside(trace: ProfilerTrace, device: bool = False) -> list[EagerRun]:
    """The operations outside all numbered ranges, in order."""
    loss = [event for event in trace.events() if event.name == LOSS]
    numbers = {
        host_event.sequence
        for event in loss
        for host_event in event.below()
        if host_event.sequence is not None
    }
    training = any(_backward(event) for event in trace.events())
    runs: list[EagerRun] = []
    for event in trace.top:
        for operation in operations(event):
            part, phase = _part(operation, loss, numbers)
            phase = phase or ("forward" if training else "")
            made = host_run(operation, part, phase)
            if not device:
                below = [
                    host_event for child in operation.children for host_event in operations(child)
                ]
                made = replace(
                    made, inner=tuple(host_run(host_event, part, phase) for host_event in below)
                )
            else:
                work = trace.work_of(operation)
                made = replace(
                    made,
                    start=work[0].start if work else operation.start,
                    ns=sum(device_work.ns for device_work in work),
                    launches=len(work),
                    kernels=tuple(device_work.name for device_work in work),
                    host_ns=operation.ns,
                )
            runs.append(made)
    return sorted(runs, key=lambda eager_run: eager_run.start)


def host_run(operation: HostEvent, part: StepPart, phase: CallPhase) -> EagerRun:
    """An operation by the host's clock."""
    return EagerRun(
        name=operation.name.replace("::", "."),
        part=part,
        phase=phase,
        start=operation.start,
        ns=operation.ns,
        launches=0 if operation.name.rpartition("::")[2] in VIEWS else 1,
        events=sum(1 for _ in operation.below()) + 0.5,
    )


def operations(event: HostEvent) -> Iterator[HostEvent]:
    """Operations at or under this event: the outermost that are not composite."""
    if event.key is not None:
        return
    if _OPERATION.match(event.name) and not is_composite(event.name):
        yield event
        return
    for child in event.children:
        yield from operations(child)


def _part(
    operation: HostEvent, loss: Sequence[HostEvent], numbers: set[int]
) -> tuple[StepPart, CallPhase]:
    phase: CallPhase = ""
    for event in operation.above():
        if event.name == LOSS:
            return "loss", "forward"
        if _OPTIMIZER.match(event.name):
            return "optimizer", "step"
        if _GRADIENTS in event.name:
            return "gradients", "backward"
        if _backward(event):
            phase = "backward"
            if event.sequence in numbers:
                return "loss", phase
    if not phase and any(operation.start >= event.end for event in loss):
        return "loss", "backward"  # the gradient of the loss itself, which starts the backward
    return "model", phase


def _backward(event: HostEvent) -> bool:
    return event.name.startswith(_NODE)


@cache
def is_composite(name: str) -> bool:
    """Whether torch runs every form of an operation as other operations
    (CompositeImplicitAutograd). Forms that write into a given tensor or use named dimensions do not
    count."""
    import torch

    space, _, operation = name.partition("::")
    packet = getattr(getattr(torch.ops, space, None), operation, None)
    forms = [one for one in getattr(packet, "overloads", list)() if not _OTHER_FORM.search(one)]
    known = [_is_composite(name if form == "default" else f"{name}.{form}") for form in forms]
    return any(known) and False not in known


def _is_composite(overload: str) -> bool | None:
    import torch

    try:
        found: bool = torch._C._dispatch_has_kernel_for_dispatch_key(
            overload, "CompositeImplicitAutograd"
        )
    except RuntimeError:  # exists only in TorchScript: `aten::to.prim_Device`
        return None
    return found


@dataclass(frozen=True)
class InRounds:
    """One operation over several calls."""

    run: EagerRun
    """As in the first call."""
    ns: tuple[int, ...]
    """Nanoseconds in each call; 0 if a call did not run it."""
    host_ns: tuple[int, ...]


def in_rounds(calls: Sequence[Sequence[EagerRun]]) -> list[InRounds]:
    """Match the operations of several calls: the n-th of a name in its part and phase."""
    found: dict[tuple[str, str, str, int], dict[int, EagerRun]] = {}
    for call, runs in enumerate(calls):
        seen: dict[tuple[str, str, str], int] = defaultdict(int)
        for run in runs:
            like = (run.part, run.phase, run.name)
            found.setdefault((*like, seen[like]), {})[call] = run
            seen[like] += 1
    made = []
    for of_calls in found.values():
        times = [of_calls.get(call) for call in range(len(calls))]
        made.append(
            InRounds(
                next(iter(of_calls.values())),
                tuple(eager_run.ns if eager_run else 0 for eager_run in times),
                tuple(
                    (eager_run.ns if eager_run.host_ns is None else eager_run.host_ns)
                    if eager_run
                    else 0
                    for eager_run in times
                ),
            )
        )
    return made
