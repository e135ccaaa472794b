"""Regions whose two sides do the same work, so that no difference is to be expected.

Identical library calls on identical tensors still differ in their surroundings: the cache contents
left by the previous step, the clock rate after it, the location of their memory. Both sides of
`linear` run `addmm` on tensors of the same sizes, strides and dtypes, and their times differ by
some percent in one process and by another amount in the next. More rounds do not reduce that.

A kernel that stands for one operation may well be slower or faster, because its code is different.
Beside other programs its difference says less: GELU and its kernel differ by 0 to 12% on a quiet
machine, and by 15 to 30% in eight processes running beside two others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from compiler.measure.regions.origins import Origins, word
from compiler.measure.regions.regions import Grouped, Placed, is_view
from compiler.trace.records import CompiledStep, EagerOperation, TensorMeta
from compiler.trace.records.profile import Sameness

LEAST: dict[Sameness, float] = {"calls": 0.05}
LEAST_CONTENDED: dict[Sameness, float] = {"calls": 1.0, "library": 1.0, "kernels": 1 / 3}
"""The minimum noise of such a region, as a share of eager's time, without and with other programs
on the processors and in the caches. Compiled calls of attentions and convolutions took 10 to 70%
longer beside two busy processes, different in each process, and 10 to 15% longer alone; the first
product after a norm took 80% longer, and in eager another product did."""

_Call = tuple[str, tuple[object, ...]]


def least_noise(eager: float, same: Sameness, *, contended: bool) -> float:
    """The minimum noise, in seconds, of a region that takes `eager` seconds. `contended`: as in the
    profile of the call (`CallProfile.contended`)."""
    return (LEAST_CONTENDED if contended else LEAST).get(same, 0.0) * eager


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


def _same_calls(origins: Origins, eager: Sequence[EagerOperation], steps: Sequence[Placed]) -> bool:
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


def _call(origins: Origins, placed: Placed) -> _Call | None:
    """What a step calls; None for a generated kernel, or if its node is unknown."""
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
