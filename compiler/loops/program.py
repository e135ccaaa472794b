"""A program: the loop nests and calls of one graph, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.loops.graph import Call, Graph
from compiler.loops.layouts import Shape
from compiler.loops.nest import Nest
from compiler.loops.sizes import Size


@dataclass(frozen=True, slots=True)
class Memory:
    """A value that lives in memory: dense, its flat index is the element offset."""

    name: str
    dtype: str
    shape: Shape
    """From the widest stride to the narrowest."""
    size: Size


@dataclass(slots=True)
class Program:
    """What fusion hands on."""

    graph: Graph
    steps: tuple[Nest | Call, ...]
    memories: dict[str, Memory] = field(default_factory=dict)
    """Of every value that some nest writes: outputs, and what another nest or a call reads."""
