"""A preview of fusing two groups, for interactive decisions: nothing is merged."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.fusion.groups import Group, final_space
from compiler.fusion.merge import Grouping, Merge
from compiler.fusion.nests import nest
from compiler.fusion.weights import L1
from compiler.loops.graph import Call, Compute, Store
from compiler.loops.printer import nest_text


def if_fused(grouping: Grouping, one: Group, two: Group, merge: Merge) -> str:
    """The loop nest of both groups as printed text."""
    places = sorted((*one.places, *two.places))
    members = [u for p in places if not isinstance(u := grouping.order.units[p], Call)]
    both = Group(one.id, places, members, merge.space, [*one.names, *two.names])
    both.space = final_space(both, L1, grouping.weights.accumulators(both.space.riders))
    stored = frozenset(_stored(grouping, both))
    return nest_text(nest(both, "if_fused", stored))


def _stored(grouping: Grouping, group: Group) -> Iterable[str]:
    """Values of the group that would be in memory (see `memories.stored_values`)."""
    inside = set(group.places)
    for place, member in zip(group.places, group.members, strict=True):
        if isinstance(member, Store):
            yield member.buffer
        elif member.name in grouping.fixed or any(
            edge.reader_place not in inside or edge.relation.kind == "gather"
            for edge in grouping.edges.of_producer[place]
        ):
            yield member.name


def origins_of(members: Iterable[Compute]) -> tuple[str, ...]:
    """The lowered graph's nodes that these members compute, without duplicates."""
    return tuple(dict.fromkeys(origin for member in members for origin in member.origins))
