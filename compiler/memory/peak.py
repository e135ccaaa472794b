"""Peak memory in bytes, for the sizes that a graph is compiled for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tcw.compiler.memory.accesses import Values
from tcw.compiler.memory.lifetimes import Timeline
from tcw.compiler.memory.plan import Placement
from tcw.compiler.memory.segments import home


def peak_bytes(
    timeline: Timeline,
    values: Values,
    temporaries: Collection[str],
    placements: Mapping[str, Placement],
    arenas: Mapping[int, int | None] | None = None,
    let_go: Collection[str] = (),
) -> int | None:
    """Peak bytes of temporaries and outputs over all steps; None if a size has no hint.

    The inputs in `let_go` count as well: they are alive from the start until they die.

    A segment allocates its outputs and arena when it starts, and frees what dies in it when it
    ends. `arenas` holds the arena sizes by step. If None, an arena is as large as its peak.
    """
    ends: dict[str, int] = {}
    lasts: dict[str, int] = {}
    for name, one in timeline.values.items():
        root = values.memory(home(name, placements))
        ends[root] = max(ends.get(root, 0), timeline.last_step(name))
        lasts[root] = max(lasts.get(root, 0), one.last)
    change = [0] * (timeline.steps + 2)
    inside = [0] * (len(timeline.runs) + 1)
    for root, end in ends.items():
        given = root in let_go
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
