"""Regions whose two sides make the same calls, so that no difference is to be expected.

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
from tcw.compiler.trace.records import EagerOperation, TensorMeta
from tcw.compiler.trace.records.profile import Sameness

LEAST = 0.05
"""The minimum noise of a region that runs the same calls, as a share of eager's time."""

_Call = tuple[str, tuple[object, ...]]


def sameness(origins: Origins, group: Grouped) -> Sameness:
    """Whether the two sides of a region make the same calls; "" if not, or if it is not
    recorded."""
    eager = [operation for operation in group.operations if not is_view(operation)]
    same = bool(eager) and len(eager) == len(group.steps)
    return "calls" if same and _same_calls(origins, eager, group.steps) else ""


def _same_calls(
    origins: Origins, eager: Sequence[EagerOperation], steps: Sequence[PlacedStep]
) -> bool:
    """Whether both sides are the same ATen operations on tensors of the same sizes, strides and
    dtypes, in any order."""
    theirs = Counter((word(operation.operation), _tensors(operation.inputs)) for operation in eager)
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
    return tuple((value.shape, value.stride, value.dtype) for value in values if value is not None)
