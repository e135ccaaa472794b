"""The work of steps or operations: launches, bytes, FLOPs, share of the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcw.compiler.trace import roofline
from tcw.compiler.trace.records import CompiledStep, EagerOperation, Timed
from tcw.viewers.collected import known_sum
from tcw.viewers.summary.profile.index import Index

Side = Sequence[CompiledStep] | Sequence[EagerOperation]


@dataclass(frozen=True)
class SideWork:
    """One side of a region, or one step of it. None if not measured or unknown."""

    time: Timed | None
    host: float | None
    """Host seconds, if they are not the same."""
    launches: int
    read_bytes: int | None
    write_bytes: int | None
    flops: int | None
    share: float | None
    """Of the roofline: the time that the machine's ceilings allow over the time taken; 0 to 1."""
    limit: str = ""
    """`bandwidth` or `rate`: the nearer ceiling."""

    @property
    def seconds(self) -> float | None:
        return self.time.median if self.time else None

    @property
    def bytes(self) -> int | None:
        if self.read_bytes is None or self.write_bytes is None:
            return None
        return self.read_bytes + self.write_bytes

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second reached."""
        return self.bytes / self.seconds if self.bytes and self.seconds else None

    @property
    def rate(self) -> float | None:
        """FLOP/s reached."""
        return self.flops / self.seconds if self.flops and self.seconds else None


def work_of(index: Index, side: Side) -> SideWork:
    """The sum over steps or operations; what is missing in one is missing in the sum. One that
    launches nothing (a view) needs no time."""
    working = [one for one in side if one.launches or one.time is not None]
    times = [one.time for one in working]
    total = sum_of(times)
    least = [least_seconds(index, one) for one in working]
    share = limit = None
    if total and total.median > 0 and least and all(one is not None for one in least):
        sums = [one for one in least if one is not None]
        share = min(1.0, sum(seconds for seconds, _ in sums) / total.median)
        limit = max(sums, key=lambda one: one[0])[1]
    return SideWork(
        time=total,
        host=known_sum(one.host.median for one in side if one.host),
        launches=sum(one.launches for one in side),
        read_bytes=_sum([one.read_bytes for one in side]),
        write_bytes=_sum([one.write_bytes for one in side]),
        flops=_sum([one.flops or 0 for one in side]) or None,
        share=share,
        limit=limit or "",
    )


def sum_of(times: Sequence[Timed | None]) -> Timed | None:
    """Medians and spreads added; None if there are none, or one is missing."""
    known = [timed for timed in times if timed is not None]
    if not known or len(known) < len(times):
        return None
    return Timed(
        median=sum(timed.median for timed in known),
        spread=sum(timed.spread for timed in known),
        runs=min(timed.runs for timed in known),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def least_seconds(index: Index, step: CompiledStep | EagerOperation) -> tuple[float, str] | None:
    """The least time that the machine's ceilings allow, and which ceiling it is."""
    ceilings = index.ceilings
    if ceilings is None or step.read_bytes is None or step.write_bytes is None:
        return None
    size = step.read_bytes + step.write_bytes
    return roofline.least_seconds(ceilings, size, step.flops, dtype_of(index, step))


def dtype_of(index: Index, step: CompiledStep | EagerOperation) -> str:
    """The dtype of its first floating result; "" if no tensor of it is recorded."""
    if isinstance(step, EagerOperation):
        values = [value.dtype for value in (*step.outputs, *step.inputs)]
    else:
        values = [node.value.dtype for node in reversed(index.nodes_of(step)) if node.value]
    return next((dtype for dtype in values if "float" in dtype), "")
