"""The order of the steps: nests gather into few segments between the calls.

Calls stay in their order (random numbers, side effects). A nest may stand in any gap between two
calls from its last needed call on to the first call that needs it; these intervals are stabbed by
as few gaps as possible (greedily by their ends, which is optimal). Where that leaves a choice, a
nest that makes more bytes than it lets go stands late, any other early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.loops.graph import Call
from compiler.loops.nest import Nest
from compiler.memory.accesses import Access, Values

Run = Nest | Call


@dataclass(frozen=True, slots=True)
class Needs:
    """What each step waits for, and who waits for it, by their places in the program."""

    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]


def needs(runs: Sequence[Run], values: Values) -> Needs:
    """Reads wait for writes, writes for reads and writes of the same memory, calls for calls."""
    before: list[dict[int, None]] = [{} for _ in runs]
    writers: dict[str, list[int]] = {}
    readers: dict[str, list[int]] = {}
    last_call = -1
    for place, run in enumerate(runs):
        found = before[place]
        accessed = values.access(run)
        for name in accessed.reads:
            found.update(dict.fromkeys(writers.get(values.memory(name), ())))
        for name in accessed.writes:
            memory = values.memory(name)
            found.update(dict.fromkeys(writers.get(memory, ())))
            found.update(dict.fromkeys(readers.get(memory, ())))
        if isinstance(run, Call):
            if last_call >= 0:
                found[last_call] = None
            last_call = place
        found.pop(place, None)
        for name in accessed.reads:
            readers.setdefault(values.memory(name), []).append(place)
        for name in accessed.writes:
            writers.setdefault(values.memory(name), []).append(place)
    after: list[list[int]] = [[] for _ in runs]
    for place, found in enumerate(before):
        for earlier in found:
            after[earlier].append(place)
    return Needs(tuple(tuple(found) for found in before), tuple(map(tuple, after)))


def gathered(runs: Sequence[Run], values: Values, *, lazy: bool) -> list[Run]:
    """The steps in an order with as few runs of nests between calls as there can be.

    `lazy`: nests that make more bytes than they let go stand as late as those runs allow.
    """
    graph = needs(runs, values)
    number: dict[int, int] = {}
    for place, run in enumerate(runs):
        if isinstance(run, Call):
            number[place] = len(number)
    first = _earliest(runs, graph, number)
    last = _latest(runs, graph, number)
    nests = [place for place, run in enumerate(runs) if isinstance(run, Nest)]
    gaps: list[int] = []
    for place in sorted(nests, key=lambda place: (last[place], place)):
        if not gaps or first[place] > gaps[-1]:
            gaps.append(last[place])
    gap = {place: next(g for g in gaps if g >= first[place]) for place in nests}
    if lazy:
        _delay(runs, values, graph, last, gaps, gap)
    slots: list[list[Run]] = [[] for _ in range(len(number) + 1)]
    for place in nests:
        slots[gap[place]].append(runs[place])
    order: list[Run] = []
    for slot, call in zip(slots, (*number, None), strict=True):
        order += slot
        if call is not None:
            order.append(runs[call])
    return order


def _earliest(runs: Sequence[Run], graph: Needs, number: dict[int, int]) -> list[int]:
    first = [0] * len(runs)
    for place in range(len(runs)):
        for earlier in graph.before[place]:
            after = number[earlier] + 1 if earlier in number else first[earlier]
            first[place] = max(first[place], after)
    return first


def _latest(runs: Sequence[Run], graph: Needs, number: dict[int, int]) -> list[int]:
    last = [len(number)] * len(runs)
    for place in reversed(range(len(runs))):
        for later in graph.after[place]:
            last[place] = min(last[place], number[later] if later in number else last[later])
    return last


def _delay(
    runs: Sequence[Run],
    values: Values,
    graph: Needs,
    last: list[int],
    gaps: list[int],
    gap: dict[int, int],
) -> None:
    """Move nests that make more bytes than they let go to the last gap that they may stand in."""
    accesses: list[Access] = [values.access(run) for run in runs]
    users: dict[str, set[int]] = {}
    for place, one in enumerate(accesses):
        for name in (*one.reads, *one.writes):
            users.setdefault(name, set()).add(place)
    for place in sorted(gap, reverse=True):
        growth = 0
        for name in accesses[place].writes:
            growth += (name not in values.inputs) * (values.number(values.bytes(name)) or 0)
        for name in accesses[place].reads:
            others = users[name] - {place}
            own = name not in values.inputs and name not in values.outputs
            if own and not any(gap.get(other, last[other]) >= gap[place] for other in others):
                growth -= values.number(values.bytes(name)) or 0
        if growth > 0:
            bound = min([last[place], *(gap[o] for o in graph.after[place] if o in gap)])
            gap[place] = max(g for g in gaps if g <= bound)
