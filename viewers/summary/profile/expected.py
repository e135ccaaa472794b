"""What the work of a side makes one expect of its time: by launches, views, bytes and FLOPs, which
are the same in every run.

The figures are round ones of common machines, and right within a factor; they order differences
that a measurement cannot tell apart, and are shown nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.trace.records import CompiledStep, EagerOperation


@dataclass(frozen=True)
class Machine:
    """Seconds of a launch and of each result of a view, bytes and FLOPs a second."""

    launch: float
    view: float
    bandwidth: float
    rate: float


HOST = Machine(launch=15e-6, view=3e-6, bandwidth=20e9, rate=100e9)
DEVICE = Machine(launch=2e-6, view=0.0, bandwidth=2e12, rate=50e12)


def expected_seconds(
    side: Iterable[CompiledStep | EagerOperation], machine: Machine
) -> float | None:
    """Of one side of a region; None where it is not known what that moves."""
    found = 0.0
    for one in side:
        seconds = _seconds(one, machine)
        if seconds is None:
            return None
        found += seconds
    return found


def _seconds(one: CompiledStep | EagerOperation, machine: Machine) -> float | None:
    if not one.launches:
        made = len(one.outputs) if isinstance(one, EagerOperation) else 1
        return machine.view * max(1, made)
    if one.read_bytes is None or one.write_bytes is None:
        return None
    moved = one.read_bytes + one.write_bytes
    return one.launches * machine.launch + max(
        moved / machine.bandwidth, (one.flops or 0) / machine.rate
    )
