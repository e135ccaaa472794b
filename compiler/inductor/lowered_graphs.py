"""The graphs being lowered: their ids in the trace, their nodes and the nodes' user lines.

All Inductor hooks see the same `GraphLowering`; what they know of it is kept here once.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import fx

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.graphs.current import current_compile_id, lowering_graph_id
from tcw.compiler.graphs.provenance import distinct_lines
from tcw.compiler.inductor.predicted import predicting
from tcw.compiler.trace.records import Location, Node
from tcw.compiler.trace.writer import TraceWriter


@dataclass
class Lowering:
    """One graph that Inductor lowers."""

    base: str
    """Id of AOTAutograd's graph, with the arch of a prediction: `0/0/forward@sm_90`."""
    parent: str
    """Id of AOTAutograd's graph in the trace: `0/0/forward`."""
    id: str
    """`0/0/forward@sm_90/lowered`."""
    compile_id: str
    predicted: bool
    inner: str
    """Its name as a sub-graph of `parent`, `constants` for the constant-folding graph; else ""."""
    positions: dict[fx.Node, int]
    """Position of each node in the lowered graph."""
    described: dict[str, Node] = field(default_factory=dict)
    """Its nodes as recorded, by name; filled by the lowering hook."""
    operations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Origins of each scheduler node, by name: `op3` -> nodes of this graph, in its order."""
    realised: dict[str, str] = field(default_factory=dict)
    """The node that each scheduler node realises, by name, if torch names one."""
    originals: dict[str, object] = field(default_factory=dict)
    """The user's operator behind each node that a pass added, if the replaced nodes have it."""
    labels: dict[str, str] = field(default_factory=dict)
    """Label of each scheduler node, by name."""
    names: dict[str, str] = field(default_factory=dict)
    """The stable name of each initial scheduler node, in schedule order: `op3` -> `exp`."""
    name_uses: dict[str, int] = field(default_factory=dict)
    """FX node name -> the number of initial scheduler nodes named after it."""
    places: dict[str, int] = field(default_factory=dict)
    """Position of each initial scheduler node in schedule order."""
    parts: dict[object, int] = field(default_factory=dict)
    """(buffer, the index expressions that a scheduler node reads it at) -> a number."""

    def lines(self, names: Iterable[str]) -> tuple[tuple[Location, ...], bool]:
        """The distinct user lines of these nodes, in file order, and whether all are inferred."""
        return distinct_lines(self.described, names)


@dataclass
class Lowerings:
    """All graphs lowered while one recorder records."""

    known: weakref.WeakKeyDictionary[object, Lowering] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    used: dict[tuple[int, str], int] = field(default_factory=dict)
    """(`Recorder.starts`, id) -> the number of graphs with that id."""


_all: weakref.WeakKeyDictionary[TraceWriter, Lowerings] = weakref.WeakKeyDictionary()


def _of(recorder: Recorder) -> Lowerings:
    lowerings = _all.get(recorder.writer)
    if lowerings is None:
        lowerings = _all[recorder.writer] = Lowerings()
    return lowerings


def forget_lowerings(recorder: Recorder) -> None:
    """Drop everything when the hooks are removed: another run of the recording starts afresh."""
    _all.pop(recorder.writer, None)


def lowering_of(recorder: Recorder, graph: object) -> Lowering:
    """What is known of one `torch._inductor.graph.GraphLowering`."""
    lowerings = _of(recorder)
    lowering = lowerings.known.get(graph)
    if lowering is None:
        lowering = lowerings.known[graph] = _new(lowerings, graph, recorder)
    return lowering


def _new(lowerings: Lowerings, graph: object, recorder: Recorder) -> Lowering:
    flags = (getattr(graph, name, False) for name in ("is_backward", "is_inference"))
    parent = lowering_graph_id(*flags)
    arch = predicting.get()
    base = f"{parent}@{arch}" if arch else parent
    name = getattr(graph, "name", None)
    inner = str(name) if name else "constants" if getattr(graph, "is_const_graph", False) else ""
    id = f"{base}/{inner}/lowered" if inner else f"{base}/lowered"
    # torch may lower several graphs of one compile (DDPOptimizer splits it): ids stay distinct
    if not recorder.quiet:  # while quiet, the graph is one that was recorded before
        count = lowerings.used[recorder.starts, id] = (
            lowerings.used.get((recorder.starts, id), 0) + 1
        )
        if count > 1:
            id = f"{id}.{count}"
    module = getattr(graph, "module", None)
    nodes = module.graph.nodes if module is not None else ()
    return Lowering(
        base=id.replace("/lowered", "", 1),
        parent=parent,
        id=id,
        compile_id=current_compile_id(),
        predicted=bool(arch),
        inner=inner,
        positions={node: place for place, node in enumerate(nodes)},
    )
