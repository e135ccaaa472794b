"""What was read of the optimizer's step, as records: its operations, its compiled steps, and one
region of both. What is compiled for it is none of the recording's graphs, so that nothing tells
which operation a kernel carries out; a fused optimizer carries out all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from compiler.measure.account.lines import difference, summed, timed
from compiler.measure.account.readings import by_key
from compiler.measure.account.records import Numbers
from compiler.measure.probes.clock import Reading
from compiler.measure.probes.graph_probe import GraphProbe
from compiler.measure.rounds.rounds import Lap
from compiler.trace.records import Record
from compiler.trace.records.profile import CompiledStep, EagerOperation, Region


def step_records(
    call: int,
    label: str,
    operations: Sequence[EagerOperation],
    steps: Mapping[int, CompiledStep],
    laps: Sequence[Sequence[Lap]],
    numbers: Numbers,
) -> Iterator[Record]:
    """`operations` by key of their readings, `steps` by theirs; `laps`: those of the eager side
    under its probe, and of the compiled side."""
    eager, compiled = (by_key(lap.readings for lap in side) for side in laps)
    known = [
        msgspec.structs.replace(
            one, id=f"e{numbers.operations + key}", of="", **_times(key, eager, laps[0])
        )
        for key, one in enumerate(operations)
    ]
    numbers.operations += len(known)
    ran = [
        msgspec.structs.replace(
            one, id=f"s{numbers.steps + place}", **_times(key, compiled, laps[1])
        )
        for place, (key, one) in enumerate(
            (key, one) for key, one in steps.items() if key in compiled
        )
    ]
    numbers.steps += len(ran)
    yield from known
    yield from ran
    rounds = min(map(len, laps))
    before = summed((eager[key] for key in range(len(known)) if key in eager), rounds)
    after = summed((compiled[key] for key in steps if key in compiled), rounds)
    gained, noise = difference(before, after)
    yield Region(
        id=f"r{numbers.regions}",
        call=call,
        label=label,
        phase="step",
        steps=tuple(one.id for one in ran),
        operations=tuple(one.id for one in known),
        eager=timed(before),
        compiled=timed(after) if ran else None,
        difference=gained,
        noise=noise,
    )
    numbers.regions += 1


def steps_of(
    call: int, graphs: Sequence[GraphProbe], bases: Sequence[int]
) -> dict[int, CompiledStep]:
    """By key of their readings, before anything was read."""
    return {
        base + 1 + one.index: CompiledStep(
            id="",
            call=call,
            kind=one.kind,
            name=one.name,
            phase="step",
            graph=f"step/{place}",
            index=one.index,
            part="optimizer",
        )
        for place, (graph, base) in enumerate(zip(graphs, bases, strict=True))
        for one in graph.steps
    }


def _times(key: int, seconds: Mapping[int, list[float]], laps: Sequence[Lap]) -> dict[str, Any]:
    """Fields that the clock read; none where it read nothing."""
    if key not in seconds:
        return {}
    found: dict[str, Any] = {"time": timed(seconds[key])}
    seen: list[Reading] = [one for one in laps[0].readings if one.key == key]
    if any(one.host_ns for one in seen):
        host = by_key(
            [
                Reading(one.key, one.start, one.host_ns or 0)
                for one in lap.readings
                if one.key == key
            ]
            for lap in laps
        )
        found["host"] = timed(host[key])
        found["launches"] = sum(one.launches for one in seen)
        found["kernels"] = tuple(name for one in seen for name in one.kernels)
    return found
