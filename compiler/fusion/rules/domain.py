"""`domain`, `reduction`, `access`, `gather`, `finish`: whether two groups can share one space, and
each value is read where the nest holds it."""

from __future__ import annotations

from tcw.compiler.fusion.edges import Edge, Edges
from tcw.compiler.fusion.groups import Group, Space
from tcw.compiler.fusion.rows import (
    Mask,
    elements,
    ends_of,
    kept_size,
    mask_of,
    mask_text,
    row_length,
    whole_size,
)
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.fusion.weights import Weights
from tcw.compiler.loops.graph import Reduce, Store

SMALL = 1 << 16
"""Maximum elements of a domain whose columns may be processed one after the other."""
SHORT, MANY = 512, 2048
"""Maximum elements and minimum number of columns that are processed one after the other in a larger
domain. What follows from 32 x 8,192 or 64 x 16,384 elements' means and maxima then takes a third to
a half of the time; columns of more elements do not gain, and few columns leave cores idle."""


def common_space(
    one: Group, two: Group, edges: list[Edge], weights: Weights, all_edges: Edges
) -> Space | Refusal:
    """The common space of both groups. A rider that becomes main is no longer among the riders."""
    if one.size == 0 or two.size == 0:
        return Refusal("empty", "a domain has no elements")
    found = (
        _same_size(one, two, edges)
        if one.size == two.size
        else _rows_join(one, two, edges, weights, all_edges)
    )
    if isinstance(found, Refusal):
        return found
    mask, riders = found
    size = one.size if mask is None else whole_size(mask)
    return Space(size, mask, tuple(dict.fromkeys(r for r in riders if r != mask)))


def _same_size(
    one: Group, two: Group, edges: list[Edge]
) -> tuple[Mask | None, tuple[Mask, ...]] | Refusal:
    wanted = one.mask or two.mask or _read_back(edges)
    for mask in (one.mask, two.mask, wanted):
        if mask is not None and mask != wanted and wanted is not None:
            return Refusal(
                "reduction", f"rows of {mask_text(wanted)} and of {mask_text(mask)} in one loop"
            )
    return wanted, (*one.space.riders, *two.space.riders)


def _read_back(edges: list[Edge]) -> Mask | None:
    """The mask of a riding reduction whose result is read for each element of its own domain."""
    for edge in edges:
        producer = edge.producer
        if isinstance(producer, Reduce) and edge.relation.kind == "broadcast":
            mask = mask_of(producer.domain, producer.reduced)
            if mask == edge.relation.mask:
                return mask
    return None


def _rows_join(
    one: Group, two: Group, edges: list[Edge], weights: Weights, all_edges: Edges
) -> tuple[Mask | None, tuple[Mask, ...]] | Refusal:
    """Make the smaller group's domain the rows of the larger group's."""
    for large, small in ((one, two), (two, one)):
        mask = large.mask or _rows_of_edges(large, edges, weights, all_edges)
        if mask is None and weights.machine.runs:
            mask = _rows_with_ends(large, small)
        if mask is None or kept_size(mask) != small.size or row_length(mask) == 1:
            continue
        if whole_size(mask) != large.size:
            continue
        if small.mask is not None:
            return Refusal("reduction", f"the rows are reduced further: {mask_text(small.mask)}")
        return mask, large.space.riders
    for edge in edges:
        if isinstance(edge.producer, Reduce) and edge.producer_group in (one.id, two.id):
            text = mask_text(mask_of(edge.producer.domain, edge.producer.reduced))
            reason = f"{edge.producer.name} ({text}) is finished only after the loop"
            return Refusal("finish", reason)
    if one.mask or two.mask:
        mask = one.mask or two.mask or ()
        return Refusal("domain", f"{one.size} and {two.size} elements, rows of {mask_text(mask)}")
    return Refusal("domain", f"{one.size} and {two.size} elements")


def _rows_with_ends(large: Group, small: Group) -> Mask | None:
    """The rows of stores at whose ends the smaller group writes an element each."""
    rows = large.members[0]
    ends = all(
        isinstance(rows, Store) and isinstance(node, Store) and ends_of(rows, node)
        for node in small.members
    )
    last = len(rows.domain) - 1
    return mask_of(rows.domain, (*(False,) * last, True)) if ends else None


def _rows_of_edges(
    large: Group, edges: list[Edge], weights: Weights, all_edges: Edges
) -> Mask | None:
    """The rows that an edge requires.

    Plain sums of long or few columns of a large domain define rows only if a result derived from
    them is read back by the elements. Otherwise it is faster to finish them after the loop and read
    them in another loop.
    """
    small = weights.machine.columns or weights.number(large.size) <= SMALL
    for edge in edges:
        if edge.reader_group == large.id and edge.relation.kind == "broadcast":
            return edge.relation.mask
        if edge.producer_group == large.id and isinstance(edge.producer, Reduce):
            mask = mask_of(edge.producer.domain, edge.producer.reduced)
            plain = small or len(mask) != 2 or _many_short_columns(mask, weights)
            if plain or comes_back(edge, mask, all_edges):
                return mask
    return None


def _many_short_columns(mask: Mask, weights: Weights) -> bool:
    length, columns = weights.number(row_length(mask)), weights.number(kept_size(mask))
    return mask[0][1] and length <= SHORT and columns >= MANY


def comes_back(edge: Edge, mask: Mask, all_edges: Edges) -> bool:
    """Whether a reduction that an edge reads, or a value derived from it row by row, is read along
    all of its rows."""
    if edge.relation.kind == "broadcast" and edge.relation.mask == mask:
        return True
    seen = {edge.reader_place}
    left = [edge.reader_place]
    while left:
        for following in all_edges.of_producer[left.pop()]:
            how = following.relation
            if how.kind == "broadcast" and how.mask == mask:
                return True
            if how.kind == "identity" and following.reader_place not in seen:
                seen.add(following.reader_place)
                left.append(following.reader_place)
    return False


def readable(edge: Edge, space: Space) -> Refusal | None:
    """Whether the reader finds the producer's value in a register."""
    how, producer, reader = edge.relation, edge.producer, edge.reader
    if how.kind == "gather":
        return Refusal("gather", f"{reader.name} gathers from {producer.name}")
    if how.kind in ("order", "slice", "division"):
        return Refusal("access", f"{reader.name} reads {producer.name} {WORDS[how.kind]}")
    element = elements(reader.domain) == space.size
    if isinstance(producer, Reduce):
        mask = mask_of(producer.domain, producer.reduced)
        if mask != space.mask:
            return Refusal(
                "finish", f"{producer.name} ({mask_text(mask)}) is finished only after the loop"
            )
        per_row = True
    else:
        per_row = elements(producer.domain) != space.size
    if per_row and element:
        if how.kind == "broadcast" and how.mask == space.mask:
            return None
        return _other_rows(edge, space.mask)
    if per_row != element and how.kind == "identity":
        return None
    return Refusal("access", f"{reader.name} reads single elements of the rows of {producer.name}")


WORDS = {"order": "in another order", "slice": "in part", "division": "by division and remainder"}


def _other_rows(edge: Edge, mask: Mask | None) -> Refusal:
    seen = edge.relation.mask
    text = mask_text(mask) if mask is not None else "no rows"
    reads = f"{edge.reader.name} reads {edge.producer.name} along {mask_text(seen)}"
    return Refusal("reduction", f"{reads}, the loop has {text}")
