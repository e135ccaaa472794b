"""Regions whose two sides do the same work: nothing that is known makes one expect a difference.

What the same library calls on the same tensors still differ by is their surroundings: what the step
before left in the caches, the clock rate after it, where their memory lies. Both sides of `linear`
run `addmm` on tensors of the same sizes, strides and dtypes, and take times that differ by some
percent in one process, and otherwise in the next; more rounds do not make that less.

A kernel that stands for one operation may well be slower or faster: its code is another. Beside
other programs its difference says less: of GELU and its kernel, which differ by 0 to 12% on a quiet
machine, 15 to 30% in eight processes that two others ran beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from compiler.measure.origins import Origins, word
from compiler.measure.regions import Grouped, Placed, is_view
from compiler.trace.records import CompiledStep, EagerOperation, TensorMeta
from compiler.trace.records.profile import Sameness

LEAST: dict[Sameness, float] = {"calls": 0.05}
LEAST_CONTENDED: dict[Sameness, float] = {"calls": 1.0, "library": 1.0, "kernels": 1 / 3}
"""Share of eager's time that such a region's noise is at least; where others use the processors,
and the caches: calls of attentions and convolutions took 10 to 70% longer compiled beside two busy
processes, in each process otherwise, and 10 to 15% by themselves; the first product after a norm
80%, which in eager another one was."""

_Call = tuple[str, tuple[object, ...]]


def least_noise(eager: float, same: Sameness, *, contended: bool) -> float:
    """Seconds that a region's noise is at least, of one that takes `eager` seconds; `contended`: as
    the profile of the call says (`CallProfile.contended`)."""
    return (LEAST_CONTENDED if contended else LEAST).get(same, 0.0) * eager


def sameness(origins: Origins, group: Grouped) -> Sameness:
    """How far the two sides of a region do the same work; "" where that is not recorded."""
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
    """Bytes; None where they are not known."""
    found = 0
    for one in side:
        if one.read_bytes is None or one.write_bytes is None:
            return None
        found += one.read_bytes + one.write_bytes
    return found


def _same_calls(origins: Origins, eager: Sequence[EagerOperation], steps: Sequence[Placed]) -> bool:
    """Whether they are the same ATen operations, of tensors with the same sizes, strides and
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
