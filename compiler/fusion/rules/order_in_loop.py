"""`cycle`, `barrier`, `scan`, `scatter`, `pointers`: constraints on the order within one loop."""

from __future__ import annotations

from tcw.compiler.fusion.dependencies import Computation, Dependencies
from tcw.compiler.fusion.groups import Group, Space
from tcw.compiler.fusion.leaves import reads
from tcw.compiler.fusion.reachability import Reachability
from tcw.compiler.fusion.rows import elements, mask_text, merged
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.fusion.statements import injective
from tcw.compiler.fusion.weights import instructions
from tcw.compiler.loops.expressions import Load
from tcw.compiler.loops.graph import Compute, Map, Scan, Store
from tcw.compiler.loops.layouts import compose_views
from tcw.compiler.protocol.decision import MOST_BETWEEN

POINTERS = 64
"""Maximum number of arrays in one loop."""
SCATTERED = 32
"""Maximum number of instructions per element in a loop with an ordered store, which runs on one
core."""


def no_cycle(
    one: Group, two: Group, reach: Reachability, nodes: list[Computation]
) -> Refusal | None:
    """No node outside both may depend on one of them while the other depends on it."""
    between = reach.between(one.id, two.id)
    if not between:
        return None
    names: list[str] = []
    while between and len(names) <= MOST_BETWEEN:
        lowest = between & -between
        names.append(nodes[lowest.bit_length() - 1].name)
        between ^= lowest
    reason = f"{names[0]} needs one of them, and the other needs {names[0]}"
    return Refusal("cycle", reason, between=tuple(names))


def no_barrier(one: Group, two: Group, space: Space, order: Dependencies) -> Refusal | None:
    """Memory edges inside a nest: only a store to the element that was just read is allowed."""
    for first, second in ((one, two), (two, one)):
        inside = set(first.places)
        for place in second.places:
            waits, over = order.before[place], order.overwrites[place]
            for earlier, why in waits.items():
                if earlier not in inside:
                    continue
                if why in ("memory", "effect"):
                    return _waits(place, earlier, order)
                refusal = _overwrites(place, earlier, space, order) if earlier in over else None
                if refusal is not None:
                    return refusal
    return None


def _waits(place: int, earlier: int, order: Dependencies) -> Refusal:
    one, two = order.nodes[place].name, order.nodes[earlier].name
    return Refusal("barrier", f"{one} runs after {two}, which uses the same memory")


def _overwrites(place: int, earlier: int, space: Space, order: Dependencies) -> Refusal | None:
    store, reader = order.nodes[place], order.nodes[earlier]
    memory = order.overwrites[place][earlier]
    refusal = _waits(place, earlier, order)
    if not isinstance(store, Store) or not isinstance(reader, (Map, Store)):
        return refusal
    if space.mask is not None or space.riders or store.terms:
        return refusal
    view = compose_views((), store.view)
    for leaf in reads(reader):
        if leaf.value == memory and (not isinstance(leaf, Load) or leaf.view != view):
            return refusal
    return None if injective(store.view) else refusal


def scans_fill_rows(space: Space, members: list[Compute]) -> Refusal | None:
    """Each scan must run over a whole row of the nest."""
    for node in members:
        if not isinstance(node, Scan):
            continue
        mask = merged((size, digit == node.digit) for digit, size in enumerate(node.domain))
        if elements(node.domain) != space.size or space.mask != mask:
            return Refusal("scan", f"{node.name} scans rows of {mask_text(mask)}")
    return None


def scatters_run_alone(space: Space, members: list[Compute]) -> Refusal | None:
    """A store that may hit an element twice runs on one core: no rows, little other work."""
    for node in members:
        if isinstance(node, Store) and (node.terms or not injective(node.view)):
            work = sum(instructions(member) for member in members)
            if space.mask is not None or space.riders or work > SCATTERED:
                return Refusal("scatter", f"{node.name} may write an element twice")
    return None


def few_pointers(one: Group, two: Group) -> Refusal | None:
    """At most `POINTERS` arrays in one loop."""
    count = len(one.buffers | two.buffers)
    if count <= POINTERS:
        return None
    return Refusal(
        "pointers",
        f"{count} arrays in one loop, {POINTERS} at most",
        numbers={"arrays": count, "most_arrays": POINTERS},
    )
