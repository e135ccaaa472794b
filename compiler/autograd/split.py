"""The state of one split of a joint graph, collected by several hooks while torch makes it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.trace.records import Graph, Location


@dataclass
class Captured:
    """The graph that Dynamo captured, as passed to AOTAutograd."""

    placeholders: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    lines: dict[str, Location] = field(default_factory=dict)


@dataclass
class MinCut:
    """One run of the min-cut."""

    saved: tuple[str, ...]
    value: float | None
    weight: dict[str, float]
    """The capacity of each node's own edge: the cost of saving it, in torch's units."""
    banned: dict[str, str]
    """torch's reason why a node cannot be recomputed."""


@dataclass
class Extraction:
    """The arguments of `_extract_fwd_bwd_modules`, as they are after the call."""

    saved: list[Any]
    static: Any = None
    """Nodes of parameters and buffers, if torch passes them."""
    outputs: int = 0
    """The number of forward outputs that are the user's, not the backward's."""


@dataclass
class JointSplit:
    """A joint graph on its way through a partitioner."""

    joint: Any
    """The joint GraphModule; None until one of torch's partitioners receives it."""
    partitioner: str
    prefix: str = ""
    """`sub1/`, `sub2/` … : the id prefix of a sub-graph's graphs."""
    record: Graph | None = None
    """The record of the joint graph, written after the first cut, before any decision is asked."""
    cuts: list[MinCut] = field(default_factory=list)
    extraction: Extraction | None = None


class _State(threading.local):
    def __init__(self) -> None:
        self.splits: list[JointSplit] = []
        self.captured: list[Captured] = []
        self.main: list[Any] = []
        self.sub_graphs = 0


state = _State()


def current_split() -> JointSplit | None:
    """The split that this thread is making, or None."""
    return state.splits[-1] if state.splits else None
