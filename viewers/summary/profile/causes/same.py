"""Rows whose two sides run the same library calls, and inputs that differ in layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcw.compiler.trace.records import CompiledStep, EagerOperation, TensorMeta
from tcw.viewers.summary.profile.causes.words import bare
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow


def working(row: RegionRow) -> tuple[Sequence[EagerOperation], Sequence[CompiledStep]]:
    """Without views, unless there is nothing else."""
    operations = [one for one in row.operations if one.launches]
    steps = [one for one in row.steps if one.launches]
    return operations or row.operations, steps or row.steps


def runs_the_same(row: RegionRow) -> bool:
    """Whether both sides call the same operations: no kernel was generated for any."""
    operations, steps = working(row)
    made = any(one.kind == "kernel" for one in row.steps)
    names = sorted(bare(one.operation) for one in operations)
    return bool(names) and not made and names == sorted(bare(one.name) for one in steps)


def other_layout(index: Index, row: RegionRow) -> str:
    """The first input that both calls read with different strides; "" if there is none."""
    operations, steps = working(row)
    for one in operations:
        for step in steps:
            if bare(one.operation) != bare(step.name):
                continue
            for theirs, ours in zip(one.inputs, _read(index, step), strict=False):
                if theirs.shape == ours.shape and _moves(theirs) != _moves(ours):
                    sizes = ", ".join(map(str, theirs.shape))
                    return (
                        f"{bare(one.operation)} reads [{sizes}] with strides "
                        f"{_strides(ours)}, in eager with {_strides(theirs)}"
                    )
    return ""


def _read(index: Index, step: CompiledStep) -> Iterable[TensorMeta]:
    """The input tensors of a library call's node."""
    kernel = index.kernel_of(step)
    called = [one for one in index.nodes_of(step) if bare(one.target) == bare(step.name)]
    if kernel is None or len(called) != 1:
        return []
    nodes = index.recording.nodes(kernel.graph)
    given = (nodes.get(name) for name in called[0].inputs)
    return [one.value for one in given if one is not None and one.value is not None]


def _moves(tensor: TensorMeta) -> object:
    """Strides of the dimensions with more than one element."""
    if tensor.stride is None:
        return None
    return [step for size, step in zip(tensor.shape, tensor.stride, strict=False) if size != 1]


def _strides(tensor: TensorMeta) -> str:
    return f"({', '.join(map(str, tensor.stride or ()))})"
