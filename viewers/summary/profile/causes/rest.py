"""Regions without a deeper cause: what it was, what it became, how near to the ceiling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcw.compiler.trace.records import CompiledStep, EagerOperation, TensorMeta
from tcw.viewers.summary.profile.causes.cause import Cause, cause_of, kept_apart, other_engine
from tcw.viewers.summary.profile.causes.step_words import bare, is_product, named, operations_text
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import SAME_CALLS_LEAST, RegionRow
from tcw.viewers.words import bytes_text, percent, plural


def working(row: RegionRow) -> tuple[Sequence[EagerOperation], Sequence[CompiledStep]]:
    """Without views, unless there is nothing else."""
    operations = [operation for operation in row.operations if operation.launches]
    steps = [step for step in row.steps if step.launches]
    return operations or row.operations, steps or row.steps


def runs_the_same(row: RegionRow) -> bool:
    """Whether both sides call the same operations: no kernel was generated for any."""
    operations, steps = working(row)
    made = any(step.kind == "kernel" for step in row.steps)
    names = sorted(bare(operation.operation) for operation in operations)
    return bool(names) and not made and names == sorted(bare(step.name) for step in steps)


def other_layout(index: Index, row: RegionRow) -> str:
    """The first input that both calls read with different strides; "" if there is none."""
    operations, steps = working(row)
    for operation in operations:
        for step in steps:
            if bare(operation.operation) != bare(step.name):
                continue
            for theirs, ours in zip(operation.inputs, _read(index, step), strict=False):
                if theirs.shape == ours.shape and _moves(theirs) != _moves(ours):
                    sizes = ", ".join(map(str, theirs.shape))
                    return (
                        f"{bare(operation.operation)} reads [{sizes}] with strides "
                        f"{_strides(ours)}, in eager with {_strides(theirs)}"
                    )
    return ""


def _read(index: Index, step: CompiledStep) -> Iterable[TensorMeta]:
    """The input tensors of a library call's node."""
    kernel = index.kernel_of(step)
    called = [node for node in index.nodes_of(step) if bare(node.target) == bare(step.name)]
    if kernel is None or len(called) != 1:
        return []
    nodes = index.recording.nodes(kernel.graph)
    given = (nodes.get(name) for name in called[0].inputs)
    return [node.value for node in given if node is not None and node.value is not None]


def _moves(tensor: TensorMeta) -> object:
    """Strides of the dimensions with more than one element."""
    if tensor.stride is None:
        return None
    return [step for size, step in zip(tensor.shape, tensor.stride, strict=False) if size != 1]


def _strides(tensor: TensorMeta) -> str:
    return f"({', '.join(map(str, tensor.stride or ()))})"


def slower(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    for row in rows:
        if row.standing != "lost":
            continue
        yield cause_of(
            row,
            kind="slower",
            title=f"{row.label} is slower compiled: {_sides(row)}",
            notes=(*_notes(index, row), *_surroundings(index, row)),
            suggestions=(*kept_apart(index, row), *other_engine(index)),
        )


def fused(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    for row in rows:
        if row.standing != "won" or not row.steps:
            continue
        saved = _saved(row)
        yield cause_of(
            row,
            kind="fused",
            title=f"{row.label}{',' if ': ' in row.label else ':'} {_sides(row)}",
            notes=((saved, *_notes(index, row)) if saved else _notes(index, row)),
        )


def _sides(row: RegionRow) -> str:
    """`5 eager operations became one kernel`."""
    operations, steps = working(row)
    if not operations and row.steps and not _in_graphs(row):
        more = plural(len(row.steps), "call")
        return f"{more} outside all graphs that eager does not make"
    made = sum(step.kind == "kernel" for step in steps)
    calls = len(steps) - made
    became = " and ".join(
        filter(
            None,
            [
                plural(made, "kernel") if made else "",
                plural(calls, "library call") if calls else "",
            ],
        )
    )
    if operations and all(is_product(operation.operation) for operation in operations) and not made:
        theirs, ours = (
            {bare(operation.operation) for operation in operations},
            {bare(s.name) for s in steps},
        )
        return "the same product" if theirs == ours else "the product of another library"
    if runs_the_same(row):
        outside = "" if _in_graphs(row) else ", outside all graphs"
        return ("the same call" if calls == 1 else f"the same {calls} calls") + outside
    return f"{plural(len(operations), 'eager operation')} became {became or 'nothing'}"


def _surroundings(index: Index, row: RegionRow) -> tuple[str, ...]:
    """Why a call that both sides make from Python may be slower after compiled code; a device's
    clock shows none of that."""
    if not row.operations or _in_graphs(row) or index.head.clock != "host":
        return ()
    return ("after generated code, ATen's code and data may be out of cache",)


def _in_graphs(row: RegionRow) -> bool:
    return any(step.graph for step in row.steps)


def _saved(row: RegionRow) -> str:
    before, after = row.eager_work.bytes, row.compiled_work.bytes
    if before is None or after is None or after >= before:
        return ""
    return f"{bytes_text(before - after)} less moved ({bytes_text(before)} → {bytes_text(after)})"


def _notes(index: Index, row: RegionRow) -> tuple[str, ...]:
    eager, compiled = operations_text(row.operations), named(step.name for step in row.steps)
    found = [f"{eager or 'nothing'} → {compiled}"]
    shares = [
        f"{side} {percent(work.share)}"
        for side, work in (("eager", row.eager_work), ("compiled", row.compiled_work))
        if work.share is not None
    ]
    if shares:
        found.append(f"share of the roofline: {', '.join(shares)}")
    if layout := other_layout(index, row):
        found.append(layout)
    if row.same_calls:
        least = f"less than {SAME_CALLS_LEAST} counts as noise"
        found.append(f"the same calls on both sides: {least}")
    return tuple(found)
