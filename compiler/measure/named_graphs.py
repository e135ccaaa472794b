"""Which compiled graph of this process a recording means by `0/0/forward`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from compiler.measure.kernels import CompiledGraph
from compiler.measure.probes.naming import root_graph
from compiler.trace.records import Kernel
from compiler.trace.writer import text_hash

G = TypeVar("G", bound=CompiledGraph)


@dataclass
class Named(Generic[G]):
    """What `named_graphs` found."""

    graphs: dict[str, G] = field(default_factory=dict)
    """By id, in the order of the records: `0/0/forward`."""
    lost: list[str] = field(default_factory=list)
    """Ids of recorded graphs of whose kernels no live graph has the texts."""


def named_graphs(found: Sequence[G], kernels: Iterable[Kernel]) -> Named[G]:
    """Each graph's id, by the texts of the functions that were recorded for it, in order: ids are
    counted anew in each compile. Graphs whose code nobody recorded are left out."""
    texts: dict[str, dict[str, str]] = {}
    for kernel in kernels:
        if not kernel.predicted:
            own = texts.setdefault(root_graph(kernel.graph)[0], {})
            if kernel.language != "aten":
                own[kernel.name] = kernel.text
    free = list(found)
    named: Named[G] = Named()
    for id, wanted in texts.items():
        alike = [graph for graph in free if set(graph.kernels) == set(wanted)]
        alike = alike or [graph for graph in free if wanted and wanted.keys() <= set(graph.kernels)]
        same = (g for g in alike if all(text_hash(g.text(k)) == wanted[k] for k in wanted))
        graph = next(same, None)
        if graph is None:
            named.lost.append(id)
        else:
            named.graphs[id] = graph
            free.remove(graph)
    return named
