"""Which values of a lowered graph lie in memory while its code runs, and where.

Inductor's are kept at compile time, where a recording is to compare what kernels computed; those of
our own engine stand in its artifact (`compiler.engine.step_buffers`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import fx

from compiler.control.recorder import Recorder

_KEY = "realised"


@dataclass
class RealisedGraph:
    """A lowered graph."""

    id: str
    """As `Kernel.graph`: `0/0/forward/lowered`."""
    module: fx.GraphModule
    places: dict[fx.Node, str] = field(default_factory=dict)
    """The buffer that holds a node's value, once some step has written it: `buf3`, `primals_1`."""
    memory: dict[str, str] = field(default_factory=dict)
    """Buffers that are no memory of their own, as they write another's: `buf7` -> `primals_5`."""
    operations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Buffers that each operation writes: `op3` -> `buf3`."""
    pieces: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Buffers that are written in pieces, by several operations: the pieces."""
    unstored: set[str] = field(default_factory=set)
    """Buffers that stayed inside of their kernel, though the code has a name for them."""


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
