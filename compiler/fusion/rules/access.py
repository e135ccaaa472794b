"""`access`, `gather`, `finish`: whether each value is read where the nest holds it."""

from __future__ import annotations

from tcw.compiler.fusion.counts import elements
from tcw.compiler.fusion.edges import Edge
from tcw.compiler.fusion.groups import Space
from tcw.compiler.fusion.rows import Mask, mask_of, mask_text
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.loops.graph import Reduce


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
                "finish", f"{producer.name} ({mask_text(mask)}) is complete only after the loop"
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
