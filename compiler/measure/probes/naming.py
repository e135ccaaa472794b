"""Which recorded kernel a step of a compiled graph runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tcw.compiler.measure.probes.graph_probe import GraphStep
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Kernel

BACKWARD = "/backward"
"""In the id of a backward graph."""
_SUBGRAPH = re.compile(r"(.+?/(?:forward|backward|inference)(?:@\w+)?)/(?!lowered)(.+)")
_UNKNOWN = 1 << 60
"""The place of a kernel whose place in the code was not recorded: after all others, in order."""


def root_graph(graph: str) -> tuple[str, str]:
    """The graph that a subgraph is part of, and the subgraph's name, or "" for a graph that is not
    a subgraph: `0/0/forward/true_graph_0` -> (`0/0/forward`, `true_graph_0`)."""
    base = base_graph(graph)
    found = _SUBGRAPH.match(base)
    return (found[1], found[2]) if found else (base, "")


def kernel_of_steps(steps: Sequence[GraphStep], kernels: Iterable[Kernel]) -> dict[int, str]:
    """Index of a step -> id of its kernel, for one graph, given the `Kernel` records of it and of
    its subgraphs.

    Matched by name. Several records with one name are matched by their order in the code, if as
    many calls were recorded as the code has steps of that name. A step whose name differs from its
    record's is matched by its place, if every step matched by name is at its own place. Steps that
    were not recorded are left out.
    """
    known: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        known[root_graph(kernel.graph)[1]].append(kernel)
    own: dict[str, list[GraphStep]] = defaultdict(list)
    for step in steps:
        own[step.within].append(step)
    found: dict[int, str] = {}
    for within, group in own.items():
        found |= _of_one(group, known.get(within, ()))
    return found


def _of_one(steps: Sequence[GraphStep], kernels: Sequence[Kernel]) -> dict[int, str]:
    calls: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for order, kernel in enumerate(kernels):
        for place in _places(kernel) or (_UNKNOWN,):
            calls[_common(kernel.name)].append((place, order, kernel.id))
    named: dict[str, list[GraphStep]] = defaultdict(list)
    for step in steps:
        named[_common(step.name)].append(step)
    found: dict[int, str] = {}
    for name, group in named.items():
        ids = [id for _, _, id in sorted(calls.get(name, ()))]
        if len(set(ids)) == 1:
            found.update(dict.fromkeys((step.index for step in group), ids[0]))
        elif len(ids) == len(group):
            found.update(zip((step.index for step in group), ids, strict=True))
    return found | _by_place(steps, kernels, found)


def _by_place(
    steps: Sequence[GraphStep], kernels: Iterable[Kernel], found: dict[int, str]
) -> dict[int, str]:
    """Match steps without a name match by place, if places agree with the order of the steps."""
    at = {place: kernel.id for kernel in kernels for place in _places(kernel)}
    order = [step.index for step in steps]
    if len(at) != len(order) or any(
        at.get(place) != found[index] for place, index in enumerate(order) if index in found
    ):
        return {}
    return {
        index: at[place] for place, index in enumerate(order) if index not in found and place in at
    }


def _places(kernel: Kernel) -> tuple[int, ...]:
    return kernel.steps or (() if kernel.step is None else (kernel.step,))


def _common(name: str) -> str:
    """The part common to an ATen call's spellings: `aten.mm` of `torch.ops.aten.mm.default`."""
    return name.removeprefix("torch.ops.").removesuffix(".default")
