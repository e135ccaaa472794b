"""Regions whose two sides are the same library calls: nothing was compiled differently there.

What such a region still differs by is its surroundings: what the step before it left in the caches,
the clock rate after it, where its memory lies. Both sides of `linear` run `addmm` on tensors of the
same sizes, strides and dtypes, and take times that differ by some percent in one process, and
otherwise in the next; more rounds do not make that less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from compiler.measure.origins import Origins, word
from compiler.measure.regions import Grouped, Placed, is_view
from compiler.trace.records import TensorMeta

LEAST, LEAST_CONTENDED = 0.05, 0.5
"""Share of its time that such a region's noise is at least; where others use the processors, and
the caches: the attentions of a GPT took 10 to 35% longer compiled beside two busy processes, in
each process otherwise, and 10 to 12% by themselves."""

_Call = tuple[str, tuple[object, ...]]


def least_noise(eager: float, *, contended: bool) -> float:
    """Seconds that such a region's noise is at least, of a region that takes `eager` seconds;
    `contended`: as the profile of the call says (`CallProfile.contended`)."""
    return (LEAST_CONTENDED if contended else LEAST) * eager


def same_calls(origins: Origins, group: Grouped) -> bool:
    """Whether all work of a region is the same ATen operations on both sides, of tensors with the
    same sizes, strides and dtypes, in any order. False where that is not recorded."""
    eager = [one for one in group.operations if not is_view(one)]
    if not eager or len(eager) != len(group.steps):
        return False
    theirs = Counter((word(one.operation), _tensors(one.inputs)) for one in eager)
    ours: Counter[_Call] = Counter()
    for placed in group.steps:
        call = _call(origins, placed)
        if call is None:
            return False
        ours[call] += 1
    return ours == theirs


def _call(origins: Origins, placed: Placed) -> _Call | None:
    """What a step calls; None of a generated kernel, and where its node is not known."""
    if placed.step.kind != "aten":
        return None
    name = word(placed.step.name.removeprefix("torch.ops.").replace("extern_kernels.", "aten."))
    found = [ref for ref in placed.computes.lowered if word(origins.nodes[ref].target) == name]
    if len(found) != 1:
        return None
    graph = found[0][0]
    given = (origins.nodes.get((graph, input)) for input in origins.nodes[found[0]].inputs)
    return name, _tensors(node.value for node in given if node is not None)


def _tensors(values: Iterable[TensorMeta | None]) -> tuple[object, ...]:
    return tuple((one.shape, one.stride, one.dtype) for one in values if one is not None)
