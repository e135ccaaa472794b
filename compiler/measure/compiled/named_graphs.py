"""Which compiled graph of this process a recording's `0/0/forward` refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tcw.compiler.measure.compiled.alone import CompiledGraph
from tcw.compiler.trace.matching import base_graph, root_graph
from tcw.compiler.trace.records import Kernel, Record, Wrapper
from tcw.compiler.trace.writer import text_hash

G = TypeVar("G", bound=CompiledGraph)


@dataclass
class NamedGraphs(Generic[G]):
    """The result of `named_graphs`."""

    graphs: dict[str, G] = field(default_factory=dict)
    """By id, in the order of the records: `0/0/forward`."""
    lost: list[str] = field(default_factory=list)
    """Ids of recorded graphs whose kernel texts no live graph has."""


def named_graphs(found: Sequence[G], records: Iterable[Record]) -> NamedGraphs[G]:
    """The graphs with their ids, matched by the texts of `Kernel` and `Wrapper` records, in order.
    Ids alone do not suffice, because each compile counts them from 0.

    A graph whose whole wrapper has the same text matches first, else one whose functions do (torch
    numbers its compiles in the wrapper's comments). Subgraphs are part of the graph that calls
    them. Graphs whose code was not recorded are left out.
    """
    texts: dict[str, dict[str, str]] = {}
    wrappers: dict[str, str] = {}
    for record in records:
        if isinstance(record, Kernel) and not record.predicted:
            own = texts.setdefault(root_graph(record.graph)[0], {})
            if record.generated:
                own[record.name] = record.text
        elif isinstance(record, Wrapper) and not record.predicted:
            wrappers[base_graph(record.graph)] = record.text
    free = list(found)
    named: NamedGraphs[G] = NamedGraphs()
    known = {name: wrappers[name] for name in texts if name in wrappers}
    exact = dict(_by_wrapper(free, known))
    for name, wanted in texts.items():
        graph = exact.get(name) or _by_kernels(free, wanted)
        if graph is None:
            named.lost.append(name)
        else:
            named.graphs[name] = graph
            if name not in exact:
                free.remove(graph)
    return named


def _by_wrapper(free: list[G], wrappers: Mapping[str, str]) -> Iterator[tuple[str, G]]:
    """Graphs matched by wrapper text, with their ids; removes them from `free`."""
    hashes = {id(graph): text_hash(getattr(graph, "source", "")) for graph in free}
    for name, wanted in wrappers.items():
        graph = next((one for one in free if hashes[id(one)] == wanted), None)
        if graph is not None:
            free.remove(graph)
            yield name, graph


def _by_kernels(free: Sequence[G], wanted: Mapping[str, str]) -> G | None:
    """The first graph that has these functions with these texts, preferably with no others."""
    alike = [graph for graph in free if set(graph.kernels) == set(wanted)]
    alike = alike or [graph for graph in free if wanted and wanted.keys() <= set(graph.kernels)]
    for graph in alike:
        if all(text_hash(graph.text(name)) == wanted[name] for name in wanted):
            return graph
    return None
