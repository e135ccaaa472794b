"""Which recorded kernel a step of a compiled graph runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from compiler.measure.probes.graph_probe import GraphStep
from compiler.trace.matching import base_graph
from compiler.trace.records import Kernel

_SUBGRAPH = re.compile(r"(.+?/(?:forward|backward|inference)(?:@\w+)?)/(?!lowered)(.+)")
_UNKNOWN = 1 << 60
"""Of a kernel whose place in the code was not recorded: after all others, in their order."""


def root_graph(graph: str) -> tuple[str, str]:
    """The graph that a subgraph is part of, and the subgraph's name, "" of one that is none:
    `0/0/forward/true_graph_0` -> (`0/0/forward`, `true_graph_0`)."""
    base = base_graph(graph)
    found = _SUBGRAPH.match(base)
    return (found[1], found[2]) if found else (base, "")


def kernel_of_steps(steps: Sequence[GraphStep], kernels: Iterable[Kernel]) -> dict[int, str]:
    """Index of a step -> id of its kernel, of one graph and the `Kernel` records of it and of its
    subgraphs.

    Found by name; of several records with one name, by their order in the code, where as many
    calls were recorded as the code has steps of that name. A step under another name than its
    record's gets the one at its own place, where every step that was found by name is at its own.
    Steps that nobody recorded are left out.
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
    """Those that no name was found for, where places agree with the order of the steps."""
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
    """What all spellings of an ATen call share: `aten.mm` of `torch.ops.aten.mm.default`."""
    return name.removeprefix("torch.ops.").removesuffix(".default")
