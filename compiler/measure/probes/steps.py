"""The steps of a compiled graph, and which recorded kernel each of them runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tcw.compiler.trace.matching import root_graph
from tcw.compiler.trace.records import Kernel

_UNKNOWN = 1 << 60
"""The place of a kernel whose place in the code was not recorded: after all others, in order."""


@dataclass(frozen=True, slots=True)
class GraphStep:
    """One call that a graph's code makes, known before it runs."""

    index: int
    """From 0, in the order of the code; a step that the code repeats is one step."""
    kind: Literal["kernel", "aten"]
    name: str
    """The generated function, or the call as its `Kernel` record names it."""
    text: str = ""
    """The line of the wrapper that makes the call."""
    within: str = ""
    """The subgraph's function that makes the call (`true_graph_0`); "" for the graph's own code."""


See = Callable[[GraphStep, Mapping[str, Any]], None]
"""Called after a step with the current tensors of the graph's code by name (`buf3`, `primals_1`).
It must not keep them without copying."""


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
