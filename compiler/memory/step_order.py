"""The order of the steps: nests are gathered into few segments between the calls.

A nest may run in any gap between two calls, from the last call that it depends on to the first call
that depends on it. These intervals are stabbed by as few gaps as possible (greedily by their ends,
which is optimal). If that leaves a choice, a nest that allocates more bytes than it frees runs
late, any other early. Calls stay in order (random numbers, side effects), except for adjacent calls
without effects: those that free most run first (`releasing`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.nest import Nest
from tcw.compiler.memory.accesses import Access, Values

NestOrCall = Nest | Call


@dataclass(frozen=True, slots=True)
class Needs:
    """The dependencies and dependents of each step, by their places in the program."""

    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]


def needs(runs: Sequence[NestOrCall], values: Values) -> Needs:
    """Reads depend on writes, writes on reads and writes of the same memory, calls on calls."""
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


def gathered(
    runs: Sequence[NestOrCall], values: Values, *, lazy: bool, freed_inputs: Collection[str] = ()
) -> list[NestOrCall]:
    """The steps in an order with as few runs of nests between calls as possible.

    `lazy`: nests that allocate more bytes than they free run as late as these runs allow.
    `freed_inputs`: inputs that are freed after their last use.
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
        _delay(runs, values, graph, last, gaps, number, gap, freed_inputs)
    slots: list[list[NestOrCall]] = [[] for _ in range(len(number) + 1)]
    for place in nests:
        slots[gap[place]].append(runs[place])
    order: list[NestOrCall] = []
    for slot, call in zip(slots, (*number, None), strict=True):
        order += slot
        if call is not None:
            order.append(runs[call])
    return order


def _earliest(runs: Sequence[NestOrCall], graph: Needs, number: dict[int, int]) -> list[int]:
    first = [0] * len(runs)
    for place in range(len(runs)):
        for earlier in graph.before[place]:
            after = number[earlier] + 1 if earlier in number else first[earlier]
            first[place] = max(first[place], after)
    return first


def _latest(runs: Sequence[NestOrCall], graph: Needs, number: dict[int, int]) -> list[int]:
    last = [len(number)] * len(runs)
    for place in reversed(range(len(runs))):
        for later in graph.after[place]:
            last[place] = min(last[place], number[later] if later in number else last[later])
    return last


def _delay(
    runs: Sequence[NestOrCall],
    values: Values,
    graph: Needs,
    last: list[int],
    gaps: list[int],
    number: dict[int, int],
    gap: dict[int, int],
    freed_inputs: Collection[str],
) -> None:
    """Move nests that allocate more bytes than they free to their last possible gap.

    Call number n follows gap n.
    """
    accesses: list[Access] = [values.access(run) for run in runs]
    users: dict[str, set[int]] = {}
    for place, access in enumerate(accesses):
        for name in (*access.reads, *access.writes):
            users.setdefault(name, set()).add(place)
    for place in sorted(gap, reverse=True):
        growth = 0
        for name in accesses[place].writes:
            growth += (name not in values.inputs) * (values.number(values.bytes(name)) or 0)
        for name in accesses[place].reads:
            others = users[name] - {place}
            own = (name in freed_inputs or name not in values.inputs) and name not in values.outputs
            if own and not any(number.get(o, gap.get(o, 0)) >= gap[place] for o in others):
                growth -= values.number(values.bytes(name)) or 0
        if growth > 0:
            bound = min([last[place], *(gap[o] for o in graph.after[place] if o in gap)])
            gap[place] = max(g for g in gaps if g <= bound)


def releasing(
    order: Sequence[NestOrCall], values: Values, freed_inputs: Collection[str]
) -> list[NestOrCall]:
    """The same order, except that among adjacent calls those that free most memory run first.

    `freed_inputs`: inputs that are freed after their last use.
    """
    last: dict[str, int] = {}
    for place, run in enumerate(order):
        accessed = values.access(run)
        last.update(dict.fromkeys((*accessed.reads, *accessed.writes), place))
    kept = (values.inputs.keys() - set(freed_inputs)) | values.outputs.keys()
    found: list[NestOrCall] = []
    start = 0
    while start < len(order):
        stop = start
        calls: list[Call] = []
        while stop < len(order) and isinstance(call := order[stop], Call) and moves(call, values):
            calls.append(call)
            stop += 1
        if len(calls) < 2:
            stop = start + 1
            found.append(order[start])
        else:
            dying = {name for name, place in last.items() if place < stop and name not in kept}
            found += _releasing(calls, values, dying)
        start = stop
    return found


def moves(call: Call, values: Values) -> bool:
    """Whether reordering the call among its neighbours affects nothing but memory use."""
    if call.effect or call.mutates or not call.target.startswith(("aten.", "mkldnn.")):
        return False
    names = (*values.access(call).reads, *values.access(call).writes)
    return not any(values.aliased(name) for name in names)


def _releasing(calls: list[Call], values: Values, dying: set[str]) -> list[Call]:
    """Order adjacent calls. `dying` are the values that nothing after them needs."""
    left = list(calls)
    found: list[Call] = []
    readers: dict[str, int] = {}
    for call in calls:
        for name in values.access(call).reads:
            readers[name] = readers.get(name, 0) + 1

    def weight(call: Call) -> tuple[int, int]:
        accessed = values.access(call)
        made = sum(values.number(values.bytes(name)) or 0 for name in accessed.writes)
        freed = sum(
            values.number(values.bytes(name)) or 0
            for name in accessed.reads
            if name in dying and readers[name] == 1
        )
        return max(made - freed, 0), made

    while left:
        missing = {name for call in left for name in values.access(call).writes}
        ready = [call for call in left if missing.isdisjoint(values.access(call).reads)]
        best = min(ready, key=weight)
        left = [call for call in left if call is not best]
        found.append(best)
        for name in values.access(best).reads:
            readers[name] -= 1
    return found
