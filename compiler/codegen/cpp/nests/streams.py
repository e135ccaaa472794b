"""Writes of one pass that have nothing in common: a pass for each, if there are many.

A core follows a few streams through memory at a time. If fusion has put the pieces of a
concatenation into one loop, that loop reads a source and writes to a place of the result for each
piece. In separate loops, each piece is copied by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.codegen.nests.facts import Facts, estimate
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Address, Local, Read
from tcw.compiler.loops.nest import Statement, Write, expressions

MOST_STREAMS = 8
"""Maximum number of sources and results that one loop follows."""
SHORTEST = 1024
"""Minimum number of bytes of a row that justify a separate loop."""


def apart(facts: Facts, effects: Sequence[Statement], lane: int) -> list[list[Statement]]:
    """The effects in groups that share no value, in order; one group if they are few."""
    writes = [effect for effect in effects if isinstance(effect, Write)]
    together = [list(effects)]
    if len(writes) != len(effects) or not all(_is_stream(facts, write, lane) for write in writes):
        return together
    used = [frozenset(_used(write)) for write in writes]
    if len(frozenset().union(*used)) + len(writes) <= MOST_STREAMS:
        return together
    groups: list[tuple[list[Statement], set[object]]] = []
    for write, own in zip(writes, used, strict=True):
        shared = [group for group in groups if group[1] & own]
        if not shared:
            groups.append(([write], set(own)))
            continue
        first = shared[0]
        for other in shared[1:]:
            first[0].extend(other[0])
            first[1].update(other[1])
            groups.remove(other)
        first[0].append(write)
        first[1].update(own)
    return [group for group, _ in groups]


def _is_stream(facts: Facts, write: Write, lane: int) -> bool:
    """Whether a write moves a long run of memory, from runs of memory."""
    size = estimate(facts.nest.axes[lane].size) * BYTES[write.dtype]
    if size < SHORTEST or write.mode != "set" or write.terms:
        return False
    addresses = [part.address for part in expressions(write) if isinstance(part, Read)]
    return all(_runs(address, lane) for address in (write.address, *addresses))


def _runs(address: Address, lane: int) -> bool:
    return address.strides[lane] in (0, 1) and not address.then


def _used(write: Write) -> set[object]:
    return {part for part in expressions(write) if isinstance(part, (Read, Local))}
