"""The memory planner: turns a program into segments, placements and deaths, and counts its peak."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tcw.compiler.control.gate import Gate
from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.loops.sizes import Size
from tcw.compiler.memory.accesses import Values
from tcw.compiler.memory.arena import Arena, Temporary, aligned, pack
from tcw.compiler.memory.plan import InArena, New, Placement, Plan, Segment, Step
from tcw.compiler.memory.reuse import OWN, REUSE, Reuse, decide
from tcw.compiler.memory.segments import Timeline, home, segment, stays_inside
from tcw.compiler.memory.step_order import NestOrCall, gathered, releasing
from tcw.compiler.protocol.decision import Decision, Detail
from tcw.compiler.trace.byte_counts import bytes_text

ORDER = "order"
EARLY, LATE, AS_FUSED = "early", "late", "as-fused"
"""Choices of an `order` decision: where to run a nest that may belong to several segments."""

ORDERS = (
    "the order of nests that may run in several segments: as early or as late as possible,"
    " or as fusion ordered them"
)

PEAK_TOLERANCE = 1.02
"""An order with fewer segments may use up to this factor more memory."""

WASTE = 4096
"""Bytes of padding allowed in the arena per temporary of symbolic size, plus 1/8 of its size."""


def plan(
    program: Program,
    gate: Gate | None = None,
    donated: Collection[str] = (),
    freed_inputs: Collection[str] = (),
) -> Plan:
    """Plan the program's memory.

    `donated`: inputs that only the graph still holds, whose memory may be reused.
    `freed_inputs`: presumably freed when they are released; they only influence the choice of an
    order.
    The plan is deterministic. Every order, reuse and refusal of a reuse passes the gate.
    """
    values, gate = Values(program), gate or Gate()
    timeline = _ordered(program, values, donated, {*donated, *freed_inputs}, gate)
    temporaries = _temporaries(timeline, values)
    placements = _placements(timeline, values, temporaries, donated, gate)
    arenas: dict[int, Size] = {}
    for step, arena in _arenas(timeline, values, temporaries, placements, gate).items():
        arenas[step] = arena.bytes
        for value, offset in arena.offsets.items():
            placements[value] = InArena(offset)
    return Plan(
        _steps(timeline, values, placements, arenas),
        placements,
        peak_bytes(
            timeline,
            values,
            temporaries,
            placements,
            {step: values.number(size) for step, size in arenas.items()},
        ),
        total_bytes(timeline, values),
    )


def _placements(
    timeline: Timeline,
    values: Values,
    temporaries: Collection[str],
    donated: Collection[str],
    gate: Gate,
) -> dict[str, Placement]:
    """The memory that each value written by a nest reuses; `New` if none, also for temporaries."""
    reuse = Reuse(timeline, values, temporaries, donated, gate)
    placements: dict[str, Placement] = {}
    for place, run in enumerate(timeline.runs):
        if not isinstance(run, Nest):
            continue
        for value in run.writes():
            if value in values.program.memories and timeline.values[value].first == place:
                reuse.choose(value, run)
                placements[value] = reuse.taken.get(value, New())
    return placements


def _ordered(
    program: Program,
    values: Values,
    donated: Collection[str],
    freed_inputs: Collection[str],
    gate: Gate,
) -> Timeline:
    """The order with the lowest peak memory; among about equal ones, that with fewest segments."""
    orders: dict[str, list[NestOrCall]] = {
        EARLY: releasing(gathered(program.steps, values, lazy=False), values, freed_inputs),
        LATE: releasing(
            gathered(program.steps, values, lazy=True, freed_inputs=freed_inputs),
            values,
            freed_inputs,
        ),
        AS_FUSED: list(program.steps),
    }
    lines: dict[str, Timeline] = {}
    for name, order in orders.items():
        if not any(line.runs == tuple(order) for line in lines.values()):
            lines[name] = Timeline(order, values)
    if len(lines) == 1:
        return lines[EARLY]
    peaks = {name: _peak(line, values, donated, freed_inputs) for name, line in lines.items()}
    least = min(peaks.values())
    best = min(
        (name for name in lines if peaks[name] <= least * PEAK_TOLERANCE),
        key=lambda name: (_segments(lines[name]), peaks[name]),
    )
    words = "; ".join(
        f"{name}: {_segments(lines[name])} segments, {bytes_text(peaks[name])}" for name in lines
    )
    decision = Decision(
        graph=program.graph.name,
        kind=ORDER,
        names=("steps",),
        default=best,
        choices=tuple(lines),
        rule="least-memory",
        reason=f"{words} at once",
        numbers={f"{name}_peak_bytes": peak for name, peak in peaks.items()},
        detail=(lambda: Detail(means=ORDERS)) if gate.asks else None,
    )
    return lines[gate.decide(decision)]


def _peak(
    timeline: Timeline, values: Values, donated: Collection[str], freed_inputs: Collection[str]
) -> int:
    """The peak with default reuse; 0 for all orders if sizes have no hints."""
    temporaries = _temporaries(timeline, values)
    placements = _placements(timeline, values, temporaries, donated, Gate())
    return peak_bytes(timeline, values, temporaries, placements, freed_inputs=freed_inputs) or 0


def _segments(timeline: Timeline) -> int:
    steps = zip(timeline.step, timeline.runs, strict=True)
    return len({step for step, run in steps if isinstance(run, Nest)})


def _temporaries(timeline: Timeline, values: Values) -> frozenset[str]:
    """Values that no call and no other segment uses, and that an arena can hold."""
    return frozenset(
        name
        for name in timeline.values
        if name in values.program.memories
        and not timeline.leaves(name)
        and _fits_arena(name, values)
    )


def _fits_arena(name: str, values: Values) -> bool:
    """Whether padding is acceptable: symbolic sizes are rounded up coefficient by coefficient."""
    exact = values.bytes(name)
    if isinstance(exact, int):
        return True
    size, padded = values.number(exact), values.number(aligned(exact))
    return size is None or padded is None or padded - size <= WASTE + size // 8


def _arenas(
    timeline: Timeline,
    values: Values,
    temporaries: Collection[str],
    placements: dict[str, Placement],
    gate: Gate,
) -> dict[int, Arena]:
    """Step -> the arena of its segment. Each value that shares bytes with another is a decision."""
    lasts: dict[str, int] = {}
    for value in placements:
        root = home(value, placements)
        if root in temporaries:
            lasts[root] = max(lasts.get(root, 0), timeline.values[value].last)
    found: dict[int, list[Temporary]] = {}
    for root, last in lasts.items():
        first = timeline.values[root].first
        temporary = Temporary(root, values.bytes(root), first, last)
        found.setdefault(timeline.step[first], []).append(temporary)
    arenas: dict[int, Arena] = {}
    for step, held in found.items():
        arena = pack(held)
        alone = {
            value
            for value, other in arena.shares.items()
            if decide(
                gate,
                values,
                value,
                REUSE,
                "arena",
                f"{other} is dead by then: its bytes are reused",
            )
            == OWN
        }
        if alone:
            arena = pack(
                [Temporary(t.value, t.bytes, t.first, t.last, t.value in alone) for t in held]
            )
        arenas[step] = arena
    return arenas


def _steps(
    timeline: Timeline, values: Values, placements: dict[str, Placement], arenas: dict[int, Size]
) -> tuple[Step, ...]:
    runs: list[Segment | Call] = []
    start = 0
    while start < len(timeline.runs):
        run = timeline.runs[start]
        stop = start + 1
        if isinstance(run, Call):
            runs.append(run)
        else:
            while stop < len(timeline.runs) and timeline.step[stop] == timeline.step[start]:
                stop += 1
            number = sum(isinstance(one, Segment) for one in runs)
            size = arenas.get(timeline.step[start], 0)
            places = range(start, stop)
            name = f"segment_{number}"
            runs.append(segment(name, places, values, timeline, placements, size))
        start = stop
    dead = _deaths(timeline, values, placements)
    return tuple(Step(run, tuple(dead.get(step, ()))) for step, run in enumerate(runs))


def _deaths(
    timeline: Timeline, values: Values, placements: dict[str, Placement]
) -> dict[int, list[str]]:
    """Step -> names that nothing needs after it, in order of first use.

    The first of a chain of values in one memory is needed by every segment that uses the memory.
    """
    needed: dict[str, int] = {}
    for place, run in enumerate(timeline.runs):
        accessed = values.access(run)
        for name in (*accessed.reads, *accessed.writes):
            needed[name] = timeline.step[place]
            if isinstance(run, Nest):
                needed[home(name, placements)] = timeline.step[place]
    for name, node in values.inputs.items():
        if not node.constant:
            needed.setdefault(name, 0)
    dead: dict[int, list[str]] = {}
    for name, step in needed.items():
        constant = name in values.inputs and values.inputs[name].constant
        inside = stays_inside(name, timeline, placements)
        if name not in values.outputs and not constant and not inside:
            dead.setdefault(step, []).append(name)
    return dead


def peak_bytes(
    timeline: Timeline,
    values: Values,
    temporaries: Collection[str],
    placements: Mapping[str, Placement],
    arenas: Mapping[int, int | None] | None = None,
    freed_inputs: Collection[str] = (),
) -> int | None:
    """Peak bytes of temporaries and outputs over all steps; None if a size has no hint.

    The inputs in `freed_inputs` count as well: they are alive from the start until they die.

    A segment allocates its outputs and arena when it starts, and frees what dies in it when it
    ends. `arenas` holds the arena sizes by step. If None, an arena is as large as its peak.
    """
    ends: dict[str, int] = {}
    lasts: dict[str, int] = {}
    for name, value in timeline.values.items():
        root = values.memory(home(name, placements))
        ends[root] = max(ends.get(root, 0), timeline.last_step(name))
        lasts[root] = max(lasts.get(root, 0), value.last)
    change = [0] * (timeline.steps + 2)
    inside = [0] * (len(timeline.runs) + 1)
    for root, end in ends.items():
        given = root in freed_inputs
        if root not in timeline.values or (root in values.inputs and not given):
            continue
        life = timeline.values[root]
        size = values.number(values.bytes(root))
        if size is None:
            return None
        if given:
            change[0] += size
            change[end + 1] -= size
        elif root in temporaries:
            inside[life.first] += size
            inside[lasts[root] + 1] -= size
        else:
            change[timeline.step[life.first]] += size
            change[end + 1] -= size
    scratch = _largest_inside(timeline, inside)
    for step, size in (arenas or {}).items():
        if size is None:
            return None
        scratch[step] = size
    alive, most = 0, 0
    for step in range(timeline.steps):
        alive += change[step]
        most = max(most, alive + scratch[step])
    return most


def _largest_inside(timeline: Timeline, change: list[int]) -> list[int]:
    largest = [0] * timeline.steps
    alive = 0
    for place, step in enumerate(timeline.step):
        alive += change[place]
        largest[step] = max(largest[step], alive)
    return largest


def total_bytes(timeline: Timeline, values: Values) -> int | None:
    """Bytes of all temporaries and outputs together, i.e. the memory needed if nothing is freed."""
    total = 0
    for name in timeline.values:
        if name in values.inputs or values.memory(name) != name:
            continue
        size = values.number(values.bytes(name))
        if size is None:
            return None
        total += size
    return total
