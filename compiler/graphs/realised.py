"""Which values of a lowered graph lie in memory while its code runs, and where.

Either engine keeps it at compile time, where a recording is to compare what kernels computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import fx

from compiler.control.recorder import Recorder

_KEY = "realised"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node's value lies, once some step has written it."""

    buffer: str
    """Name in the graph's code: `buf3`, `primals_1`."""
    item: tuple[int, ...] = ()
    """Where the name holds a tuple: which element."""


@dataclass
class RealisedGraph:
    """A lowered graph."""

    id: str
    """As `Kernel.graph`: `0/0/forward/lowered`."""
    module: fx.GraphModule
    places: dict[fx.Node, Place] = field(default_factory=dict)
    memory: dict[str, str] = field(default_factory=dict)
    """Buffers that are no memory of their own, as they write another's: `buf7` -> `primals_5`."""
    operations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Buffers that each operation writes: `op3` -> `buf3`."""


def keep(recorder: Recorder, graph: RealisedGraph) -> None:
    """For `kept_graphs`, until ids count from 0 again."""
    known = recorder.kept.setdefault(_KEY, {})
    assert isinstance(known, dict)
    known[recorder.starts, graph.id] = graph


def kept_graphs(recorder: Recorder) -> dict[str, RealisedGraph]:
    """By id, those of what is compiled now."""
    known = recorder.kept.get(_KEY)
    if not isinstance(known, dict):
        return {}
    return {id: graph for (starts, id), graph in known.items() if starts == recorder.starts}
