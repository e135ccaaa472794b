"""Kernels slow because of their code: spilled registers, unused threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Advice, Decided, Kernel, KernelBinary
from tcw.viewers.labels import kernel_label
from tcw.viewers.summary.profile.causes.cause import (
    MAX_AUTOTUNE,
    Cause,
    cause_of,
    mode,
    other_engine,
    override,
)
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import bytes_text, plural


def spills(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    binaries = {
        kernel_binary.kernel: kernel_binary
        for kernel_binary in index.recording.all(KernelBinary)
        if kernel_binary.spill_bytes and not kernel_binary.predicted
    }
    for row in rows:
        steps = [step for step in row.steps if step.kernel in binaries]
        if row.standing != "lost" or not steps:
            continue
        binary = binaries[steps[0].kernel]
        yield cause_of(
            row,
            kind="spill",
            title=f"{steps[0].name} spills {bytes_text(binary.spill_bytes)} per thread",
            notes=(
                f"{binary.registers} registers with {binary.configuration}"
                if binary.registers
                else binary.configuration,
                f"{plural(sum(operation.launches for operation in row.operations), 'launch')} "
                f"in eager became {plural(len(row.steps), 'kernel')}",
            ),
            fixes=(
                Advice(
                    text="tries other block sizes and warp counts",
                    code='torch.compile(model, mode="max-autotune")',
                ),
            ),
            suggestions=mode(index, MAX_AUTOTUNE),
        )


def threads(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """C++ run by one thread in a process with several."""
    machine = index.recording.environment
    count = machine.threads if machine else 1
    if count < 2 or index.head.clock != "host":
        return
    for row in rows:
        kernels = [k for step in row.steps if (k := index.kernel_of(step)) is not None]
        alone = [kernel for kernel in kernels if _one_thread(index, kernel)]
        if row.standing != "lost" or not alone or not row.operations:
            continue
        first = alone[0]
        decided = _decision(index, first)
        notes = [f"eager's operations may use all {count} threads"]
        suggestions = other_engine(index)
        if decided is not None:
            notes.insert(0, f"{decided.rule}: {decided.reason}" if decided.rule else decided.reason)
            other = [choice for choice in decided.choices if choice != decided.choice]
            if other:
                words = f"{decided.kind}: {other[0]} instead of {decided.choice}"
                suggestions = (override(decided.id, other[0], words),)
        yield cause_of(
            row,
            kind="threads",
            title=f"{kernel_label(first)} runs on one thread of {count}",
            notes=tuple(filter(None, notes)),
            suggestions=suggestions,
        )


_THREADED = ("omp parallel", "omp for", "GOMP_parallel", "parallel(")


def _one_thread(index: Index, kernel: Kernel) -> bool:
    if kernel.language != "cpp":
        return False
    decided = _decision(index, kernel)
    if decided is not None:
        return decided.choice == "one"
    text = index.recording.text(kernel.text)
    return bool(text) and not any(word in text for word in _THREADED)


def _decision(index: Index, kernel: Kernel) -> Decided | None:
    """The engine's decision about the threads of a kernel, if it made one."""
    graph = base_graph(kernel.graph)
    for decided in index.recording.decisions.taken("threads", graph, f"{graph}/lowered"):
        named = decided.id.rpartition("/")[2].partition("#")[0]
        if any(name in kernel.origins for name in named.split("+")):
            return decided
    return None
