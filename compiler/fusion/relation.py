"""How a reader's domain accesses a producer's value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from compiler.fusion.rows import Mask, kept_size, mask_of_broadcast
from compiler.loops.expressions import Gather, Load
from compiler.loops.layouts import View, normalize
from compiler.loops.sizes import Size

RelationKind = Literal["identity", "broadcast", "order", "slice", "division", "gather"]


@dataclass(frozen=True, slots=True)
class Relation:
    """`identity`: element by element. `broadcast`: one element per row of `mask`. `order`: all
    elements in another order. `slice`: a subset. `division`: not expressible as a single layout.
    `gather`: at positions given by an index."""

    kind: RelationKind
    mask: Mask = ()


IDENTITY = Relation("identity")
GATHER = Relation("gather")


def relation(leaf: Load | Gather, domain: Size, extent: Size) -> Relation:
    """How a domain of this size accesses a value of this extent through a leaf."""
    return GATHER if isinstance(leaf, Gather) else _relation(leaf.view, domain, extent)


@lru_cache(maxsize=1 << 14)
def _relation(view: View, domain: Size, extent: Size) -> Relation:
    if not view:
        return IDENTITY if domain == extent else Relation("slice")
    if len(view) > 1:
        return Relation("division")
    layout = normalize(view[0])
    if layout.is_identity():
        return IDENTITY if domain == extent else Relation("slice")
    mask = mask_of_broadcast(layout)
    if mask is not None:
        return Relation("broadcast", mask) if kept_size(mask) == extent else Relation("slice")
    if layout.offset == 0 and domain == extent and 0 not in layout.strides:
        return Relation("order")
    return Relation("slice")
