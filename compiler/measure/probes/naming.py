"""Which recorded kernel a step of a compiled graph runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from compiler.measure.probes.graph_probe import GraphStep
from compiler.trace.records import Kernel

_UNKNOWN = 1 << 60
"""Of a kernel whose place in the code was not recorded: after all others, in their order."""


def kernel_of_steps(steps: Sequence[GraphStep], kernels: Iterable[Kernel]) -> dict[int, str]:
    """Index of a step -> id of its kernel, of one graph and its own `Kernel` records.

    Found by name; of several records with one name, by their order in the code, where as many
    calls were recorded as the code has steps of that name. A step under another name than its
    record's gets the one at its own place, where every step that was found by name is at its own.
    Steps that nobody recorded are left out.
    """
    known = list(kernels)
    calls: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for order, kernel in enumerate(known):
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
    return found | _by_place(steps, known, found)


def _by_place(
    steps: Sequence[GraphStep], kernels: Iterable[Kernel], found: dict[int, str]
) -> dict[int, str]:
    """Those that no name was found for, where places agree with the order of the steps."""
    at: dict[int, str] = {place: kernel.id for kernel in kernels for place in _places(kernel)}
    if len(at) != len(steps) or any(at.get(index) != id for index, id in found.items()):
        return {}
    return {
        step.index: at[step.index] for step in steps if step.index not in found and step.index in at
    }


def _places(kernel: Kernel) -> tuple[int, ...]:
    return kernel.steps or (() if kernel.step is None else (kernel.step,))


def _common(name: str) -> str:
    """What all spellings of an ATen call share: `aten.mm` of `torch.ops.aten.mm.default`."""
    return name.removeprefix("torch.ops.").removesuffix(".default")
