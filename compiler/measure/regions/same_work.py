"""Regions whose two sides do the same work, so that no difference is to be expected.

Identical library calls on identical tensors still differ in their surroundings: the cache contents
left by the previous step, the clock rate after it, the location of their memory. Both sides of
`linear` run `addmm` on tensors of the same sizes, strides and dtypes, and their times differ by
some percent in one process and by another amount in the next. More rounds do not reduce that.

A kernel that stands for one operation may well be slower or faster, because its code is different.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tcw.compiler.measure.regions.origins import Origins, word
from tcw.compiler.measure.regions.regions import Grouped, PlacedStep, is_view
from tcw.compiler.measure.work.operations import called
from tcw.compiler.trace.records import CompiledStep, EagerOperation, TensorMeta
from tcw.compiler.trace.records.profile import Sameness

LEAST = 0.05
"""The minimum noise of a region that runs the same calls, as a share of eager's time."""
LEAST_CONTENDED = 1.0
"""The same for every region that does the same work, if other programs use the processors and the
caches. Beside two busy processes, attentions and convolutions took up to 70% longer, different in
each process. A slow-down by less than the whole time says nothing there."""

_Call = tuple[str, tuple[object, ...]]


def least_noise(eager: float, same: Sameness, *, contended: bool) -> float:
    """The minimum noise, in seconds, of a region that takes `eager` seconds. `contended`: as in the
    profile of the call (`CallProfile.contended`)."""
    if contended:
        return LEAST_CONTENDED * eager if same else 0.0
    return LEAST * eager if same == "calls" else 0.0


def sameness(origins: Origins, group: Grouped) -> Sameness:
    """How far the two sides of a region do the same work; "" if that is not recorded."""
    eager = [one for one in group.operations if not is_view(one)]
    if not eager or len(eager) != len(group.steps):
        return ""
    if _same_calls(origins, eager, group.steps):
        return "calls"
    steps = [placed.step for placed in group.steps]
    moved = _moved(eager)
    if moved is None or moved != _moved(steps):
        return ""
    return "kernels" if any(one.kind == "kernel" for one in steps) else "library"


def _moved(side: Sequence[EagerOperation | CompiledStep]) -> int | None:
    """Bytes; None if unknown."""
    found = 0
    for one in side:
        if one.read_bytes is None or one.write_bytes is None:
            return None
        found += one.read_bytes + one.write_bytes
    return found


def _same_calls(
    origins: Origins, eager: Sequence[EagerOperation], steps: Sequence[PlacedStep]
) -> bool:
    """Whether both sides are the same ATen operations on tensors of the same sizes, strides and
    dtypes, in any order."""
    theirs = Counter((word(one.operation), _tensors(one.inputs)) for one in eager)
    ours: Counter[_Call] = Counter()
    for placed in steps:
        call = _call(origins, placed)
        if call is None:
            return False
        ours[call] += 1
    return ours == theirs


def _call(origins: Origins, placed: PlacedStep) -> _Call | None:
    """What a step calls; None for a generated kernel, or if its node is unknown."""
    if placed.step.kind != "aten":
        return None
    name = word(called(placed.step.name))
    found = [ref for ref in placed.computes.lowered if word(origins.nodes[ref].target) == name]
    if len(found) != 1:
        return None
    graph = found[0][0]
    given = (origins.nodes.get((graph, input)) for input in origins.nodes[found[0]].inputs)
    return name, _tensors(node.value for node in given if node is not None)


def _tensors(values: Iterable[TensorMeta | None]) -> tuple[object, ...]:
    return tuple((one.shape, one.stride, one.dtype) for one in values if one is not None)
