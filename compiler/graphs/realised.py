"""Which values of a lowered graph are in memory while its code runs, and in which buffer.

For Inductor these are recorded at compile time, if a recording is to compare what kernels computed.
Our own engine has them in its artifact (`tcw.compiler.engine.step_buffers`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import fx

from tcw.compiler.control.recorder import Recorder

_KEY = "realised"


@dataclass
class RealisedGraph:
    """A lowered graph and the buffers that hold its values."""

    id: str
    """As `Kernel.graph`: `0/0/forward/lowered`."""
    module: fx.GraphModule
    places: dict[fx.Node, str] = field(default_factory=dict)
    """The buffer that holds a node's value once a step has written it: `buf3`, `primals_1`."""
    memory: dict[str, str] = field(default_factory=dict)
    """Buffers without storage of their own, which write into another: `buf7` -> `primals_5`."""
    operations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The buffers that each operation writes: `op3` -> `buf3`."""
    pieces: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Buffers that several operations write piecewise, with their pieces."""
    unstored: set[str] = field(default_factory=set)
    """Buffers that never leave their kernel, although the code names them."""


def keep_realised(recorder: Recorder, graph: RealisedGraph) -> None:
    """Keep a graph for `kept_graphs` until graph ids restart at 0."""
    known = recorder.kept.setdefault(_KEY, {})
    assert isinstance(known, dict)
    known[recorder.starts, graph.id] = graph


def kept_graphs(recorder: Recorder) -> dict[str, RealisedGraph]:
    """The kept graphs of the current compile, by id."""
    known = recorder.kept.get(_KEY)
    if not isinstance(known, dict):
        return {}
    return {id: graph for (starts, id), graph in known.items() if starts == recorder.starts}
