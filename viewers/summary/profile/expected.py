"""The time one expects of a side from its work: launches, views, bytes and FLOPs, which are the
same in every run.

The rates are round numbers for common machines, right within a factor. They order differences that
a measurement cannot separate, and are shown nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.trace.records import CompiledStep, EagerOperation


@dataclass(frozen=True)
class Machine:
    """Seconds per launch and per result of a view; bytes and FLOPs per second."""

    launch: float
    view: float
    bandwidth: float
    rate: float


HOST = Machine(launch=15e-6, view=3e-6, bandwidth=20e9, rate=100e9)
DEVICE = Machine(launch=2e-6, view=0.0, bandwidth=2e12, rate=50e12)


def expected_seconds(
    side: Iterable[CompiledStep | EagerOperation], machine: Machine
) -> float | None:
    """The expected seconds of one side of a region; None if its bytes are unknown."""
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
