"""The leaves of a node's expressions, cached, since fusion walks them most."""

from __future__ import annotations

from tcw.compiler.loops.expressions import Gather, Iota, Load
from tcw.compiler.loops.graph import Compute, expressions

Leaf = Load | Gather | Iota


_KNOWN: dict[int, tuple[Compute, list[Leaf], list[Load | Gather]]] = {}
"""Keyed by id, since hashing a node walks it. Each entry keeps its node alive, and thus its id."""


def leaves(node: Compute) -> list[Leaf]:
    """A node's `Load`, `Gather` and `Iota` leaves in evaluation order. Do not modify the list."""
    return _known(node)[1]


def reads(node: Compute) -> list[Load | Gather]:
    """A node's loads and gathers in evaluation order. Do not modify the list."""
    return _known(node)[2]


def forget() -> None:
    """Release all nodes, after each graph."""
    _KNOWN.clear()


def _known(node: Compute) -> tuple[Compute, list[Leaf], list[Load | Gather]]:
    known = _KNOWN.get(id(node))
    if known is None:
        found = [part for part in expressions(node) if isinstance(part, (Load, Gather, Iota))]
        known = (node, found, [leaf for leaf in found if not isinstance(leaf, Iota)])
        _KNOWN[id(node)] = known
    return known
