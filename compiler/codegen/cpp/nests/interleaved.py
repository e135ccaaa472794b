"""Writes whose elements fill the gaps between each other's: pairs side by side, repeated elements.

write a to out + 2*i          one store of whole vectors a0 b0 a1 b1 ...
write b to out + 2*i + 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.nest import Write
from tcw.compiler.loops.sizes import Size, add

ALWAYS_INTERLEAVED, MOST_INTERLEAVED = 4, 8
"""Writes that are shuffled into whole vectors: n vectors take n * (n - 1) shuffles, and as many
stores as there are elements otherwise. More than `ALWAYS_INTERLEAVED` pay off with vectors of twice
as many lanes."""


def interleaved(effects: Sequence[Write], facts: Facts, step: Size, lanes: int) -> int:
    """How many writes, from the first on, fill the gaps between elements `step` apart; 0: none."""
    first = effects[0]
    most = min(max(lanes // 2, ALWAYS_INTERLEAVED), MOST_INTERLEAVED, len(effects))
    if not isinstance(step, int) or not 2 <= step <= most:
        return 0
    if first.buffer in facts.nest.reads():
        return 0
    for place, effect in enumerate(effects[:step]):
        start, own = first.address, effect.address
        if (
            effect.buffer != first.buffer
            or effect.mode != "set"
            or effect.terms
            or own.then
            or own.strides != start.strides
            or facts.domain(effect) != facts.domain(first)
            or add(start.offset, place) != own.offset
        ):
            return 0
    return step


def all_interleaved(facts: Facts, lane: int, lanes: int) -> Iterator[Write]:
    """The writes that are interleaved if this axis is on this number of lanes."""
    writes = [statement for statement in facts.nest.statements if isinstance(statement, Write)]
    at = 0
    while at < len(writes):
        count = interleaved(writes[at:], facts, writes[at].address.strides[lane], lanes)
        yield from writes[at : at + count]
        at += count or 1
