"""The readings of the optimizer's step as records: its operations, its compiled steps, and one
region of both. Its compiled graphs are not part of the recording, so it is unknown which operation
a kernel carries out; a fused optimizer carries out all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tcw.compiler.measure.account.lines import summed
from tcw.compiler.measure.account.readings import SideRounds
from tcw.compiler.measure.account.records import IdCounts, times
from tcw.compiler.measure.probes.graph_probe import GraphProbe
from tcw.compiler.measure.rounds.laps import Side
from tcw.compiler.measure.rounds.noise import difference, timed
from tcw.compiler.trace.records import Record
from tcw.compiler.trace.records.profile import CompiledStep, EagerOperation, Region


def step_records(
    call: int,
    label: str,
    operations: Sequence[EagerOperation],
    steps: Mapping[int, CompiledStep],
    sides: Mapping[Side, SideRounds],
    numbers: IdCounts,
    contended: bool,
) -> Iterator[Record]:
    """`operations` by key of their readings, `steps` by theirs. `contended`: as in
    `CallProfile.contended`."""
    eager, compiled = sides["eager"], sides["compiled"]
    known = [
        msgspec.structs.replace(one, id=f"e{numbers.operations + key}", of="", **times(eager, key))
        for key, one in enumerate(operations)
    ]
    numbers.operations += len(known)
    ran = [
        msgspec.structs.replace(one, id=f"s{numbers.steps + place}", **times(compiled, key))
        for place, (key, one) in enumerate(
            (key, one) for key, one in steps.items() if key in compiled.seconds
        )
    ]
    numbers.steps += len(ran)
    yield from known
    yield from ran
    rounds = min(eager.rounds, compiled.rounds)
    before = summed((found for key, found in eager.seconds.items() if key < len(known)), rounds)
    after = summed((found for key, found in compiled.seconds.items() if key in steps), rounds)
    gained, noise = difference(before, after, independent=not contended)
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
