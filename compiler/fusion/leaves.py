"""The leaves of a node's expressions, cached, since fusion walks them most."""

from __future__ import annotations

from compiler.loops.expressions import Expression, Gather, Iota, Load, Op
from compiler.loops.graph import Compute, Store

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
        found = _leaves(node)
        known = (node, found, [leaf for leaf in found if not isinstance(leaf, Iota)])
        _KNOWN[id(node)] = known
    return known


def _leaves(node: Compute) -> list[Leaf]:
    found: list[Leaf] = []
    _collect(node.expression, found)
    if isinstance(node, Store):
        for term in node.terms:
            _collect(term.index, found)
    return found


def _collect(expression: Expression, found: list[Leaf]) -> None:
    if isinstance(expression, Op):
        for argument in expression.args:
            _collect(argument, found)
    elif isinstance(expression, (Load, Iota)):
        found.append(expression)
    elif isinstance(expression, Gather):
        for term in expression.terms:
            _collect(term.index, found)
        found.append(expression)
