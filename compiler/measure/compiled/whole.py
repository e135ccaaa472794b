"""Compiled graphs called by themselves, with the arguments of one real call."""

from __future__ import annotations

from typing import Any

import torch

from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.compiled.alone import CompiledGraph, NotAlone, Replay
from tcw.compiler.measure.compiled.shadows import Shadows
from tcw.compiler.measure.precision.numerics import tensor_error


def whole(graph: CompiledGraph) -> Replay:
    """A graph that can be called repeatedly; arguments that it changes are restored.

    Raises `NotAlone` and `tcw.compiler.measure.compiled.shadows.TooMuchMemory`.
    """
    shadows, arguments = _arguments(graph)

    def run() -> Any:
        with torch.no_grad():
            return graph.run(list(arguments))

    run()
    changed = [one for one in shadows.all if not torch.equal(one.data, one.initial)]
    return Replay(run, changed, shadows)


def equal_outputs(
    first: CompiledGraph, second: CompiledGraph, in_place: bool = True
) -> tuple[bool | None, float | None]:
    """Whether both graphs return the same, each for its own arguments and with the same random
    numbers; and if not, the largest difference. (None, None) if they return tensors that differ in
    number or shape.

    `in_place`: also compare the arguments after the call. Pass False for a backward graph, which
    may reuse the memory of what was saved for it.
    """
    results = []
    state = torch.get_rng_state()
    try:
        for graph in (first, second):
            torch.set_rng_state(state)
            _, arguments = _arguments(graph)
            with torch.no_grad():
                outputs = graph.run(list(arguments))
            held = (outputs, arguments) if in_place else outputs
            results.append([value for _, value in leaves(held)])
    finally:
        torch.set_rng_state(state)
    return compared(*results)


def _arguments(graph: CompiledGraph) -> tuple[Shadows, list[Any]]:
    if graph.arguments is None:
        raise NotAlone("its graph was not called")
    shadows = Shadows()
    return shadows, [shadows.value(value) for value in graph.arguments]


def compared(one: list[Any], other: list[Any]) -> tuple[bool | None, float | None]:
    """(bitwise equal, largest difference) of two lists of values; see `equal_outputs`."""
    if len(one) != len(other):
        return None, None
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        tensors = isinstance(a, torch.Tensor), isinstance(b, torch.Tensor)
        if tensors == (False, False):
            continue
        if not all(tensors) or a.shape != b.shape or a.dtype != b.dtype:
            return None, None
        error, _, note = tensor_error(b, a)
        if note:
            return False, None
        worst = max(worst, error)
    return worst == 0.0, worst if worst else None
