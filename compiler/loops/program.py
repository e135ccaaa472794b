"""A program: the loop nests and calls of one graph, in execution order."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.graph import Call, Graph
from tcw.compiler.loops.layouts import Shape
from tcw.compiler.loops.nest import Nest
from tcw.compiler.loops.sizes import Size, multiply


@dataclass(frozen=True, slots=True)
class Memory:
    """A value in memory. It is dense: its flat index is the element offset."""

    name: str
    dtype: str
    shape: Shape
    """Dimensions from the widest stride to the narrowest."""
    size: Size

    @property
    def bytes(self) -> Size:
        return multiply(self.size, BYTES[self.dtype])


@dataclass(slots=True)
class Program:
    """The output of fusion."""

    graph: Graph
    steps: tuple[Nest | Call, ...]
    memories: dict[str, Memory] = field(default_factory=dict)
    """The values that nests write: outputs, and whatever another nest or a call reads."""
