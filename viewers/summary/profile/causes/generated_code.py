"""Kernels slow because of their code: spilled registers, unused threads, wasteful loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tcw.compiler.trace.records import Advice, Kernel, KernelBinary, KernelNests
from tcw.viewers.labels import kernel_label
from tcw.viewers.summary.code_faults import REALIZE, CodeFault, code_faults, decision_of
from tcw.viewers.summary.place import place_of
from tcw.viewers.summary.profile.causes.cause import (
    MAX_AUTOTUNE,
    Cause,
    cause_of,
    mode,
    other_engine,
    override,
)
from tcw.viewers.summary.profile.causes.remedies import of_setting
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import bytes_text, plural, seconds_text


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
        decided = decision_of(index.recording, first, "threads")
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
    decided = decision_of(index.recording, kernel, "threads")
    if decided is not None:
        return decided.choice == "one"
    text = index.recording.text(kernel.text)
    return bool(text) and not any(word in text for word in _THREADED)


def loops(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """Loops that compute a value again, use no vectors, or read memory with gaps."""
    by_kernel: dict[str, list[CodeFault]] = {}
    for fault in code_faults(index.recording):
        if fault.kind in ("computed again", "no vectors", "strided reads"):
            for kernel in fault.kernels:
                by_kernel.setdefault(kernel, []).append(fault)
    nests = {
        (record.kernel, nest.line): nest.time.median
        for record in index.recording.all(KernelNests)
        if record.call == index.head.call
        for nest in record.nests
    }
    for row in rows:
        kernels = dict.fromkeys(step.kernel for step in row.steps)
        found = [fault for kernel in kernels for fault in by_kernel.get(kernel, ())]
        if row.standing != "lost" or not found or not row.operations:
            continue
        again = any(fault.kind == "computed again" for fault in found)
        taken = (_timed(fault, nests) for fault in found)
        first, *notes = dict.fromkeys(taken)
        yield cause_of(
            row,
            kind="loops",
            title=first,
            notes=tuple(notes[:3]),
            place=place_of(index.recording, found[0].location),
            suggestions=(*(of_setting(REALIZE, "realize") if again else ()), *other_engine(index)),
        )


def _timed(fault: CodeFault, nests: Mapping[tuple[str, int], float]) -> str:
    """What a loop does, with its time where each nest was timed."""
    known = [nests[key] for kernel in fault.kernels if (key := (kernel, fault.line)) in nests]
    return f"{fault.text}: {seconds_text(sum(known))}" if known else fault.text
