"""What the work of a side makes one expect of its time: by launches, views, bytes and FLOPs, so that
it is the same in every run.

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


def expected_seconds(side: Iterable[CompiledStep | EagerOperation], machine: Machine) -> float:
    """Of one side of a region; what is not known of it is taken for nothing."""
    return sum(_seconds(one, machine) for one in side)


def _seconds(one: CompiledStep | EagerOperation, machine: Machine) -> float:
    if not one.launches:
        made = len(one.outputs) if isinstance(one, EagerOperation) else 1
        return machine.view * max(1, made)
    moved = (one.read_bytes or 0) + (one.write_bytes or 0)
    return one.launches * machine.launch + max(
        moved / machine.bandwidth, (one.flops or 0) / machine.rate
    )
