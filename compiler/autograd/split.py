"""What is known of one split of a joint graph while torch makes it, hook by hook."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from compiler.trace.records import Location


@dataclass
class Captured:
    """The graph that Dynamo captured, as AOTAutograd was given it."""

    placeholders: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    lines: dict[str, Location] = field(default_factory=dict)


@dataclass
class Cut:
    """One run of the min-cut."""

    saved: tuple[str, ...]
    value: float | None
    weight: dict[str, float]
    """Capacity of each node's own edge: what saving it costs, in torch's units."""
    banned: dict[str, str]
    """torch's reason why a node cannot be recomputed."""
    wanted: dict[str, str]
    """torch's reason why a node has to be computed, or be there, in the backward."""


@dataclass
class Extraction:
    """The arguments of `_extract_fwd_bwd_modules`, as they are after it."""

    saved: list[Any]
    sizes: list[Any]
    static: Any = None
    """Nodes of parameters and buffers, where torch says."""
    outputs: int = 0
    """How many outputs of the forward are not for the backward."""


@dataclass
class Split:
    """One joint graph on its way through a partitioner."""

    joint: Any
    """Its GraphModule; None until one of torch's partitioners is given it."""
    partitioner: str
    prefix: str = ""
    """`sub1/`, `sub2/` … before the ids of a sub-graph's graphs."""
    cuts: list[Cut] = field(default_factory=list)
    extraction: Extraction | None = None


class _State(threading.local):
    def __init__(self) -> None:
        self.splits: list[Split] = []
        self.captured: list[Captured] = []
        self.main: list[Any] = []
        self.sub_graphs = 0


state = _State()


def current() -> Split | None:
    """The split that this thread is making."""
    return state.splits[-1] if state.splits else None
