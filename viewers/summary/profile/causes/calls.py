"""Library calls: a fallback, layout copies, a product from another library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcw.compiler.trace.records import Advice, CompiledStep, Lowered
from tcw.viewers.labels import kernel_label
from tcw.viewers.summary.place import place_of
from tcw.viewers.summary.profile.causes.cause import (
    MAX_AUTOTUNE,
    Cause,
    cause_of,
    mode,
    other_engine,
)
from tcw.viewers.summary.profile.causes.rest import runs_the_same
from tcw.viewers.summary.profile.causes.step_words import bare, is_aten, is_product, named
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import bytes_text, plural, seconds_text

_LIBRARY = "left to the library"
"""The note on every product: not a fallback."""
_COPIES = frozenset({"clone", "copy_", "_to_copy", "contiguous", "copy"})


def fallbacks(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """The cost of an operation without loops, in a row where eager does more than call it."""
    reasons = {(one.graph, one.node): one for one in index.recording.all(Lowered) if one.fallback}
    for row in rows:
        if row.standing != "lost" or not row.operations or runs_the_same(row):
            continue
        for step in row.steps:
            kernel = index.kernel_of(step)
            if step.kind != "aten" or kernel is None or is_product(step.name):
                continue
            lowered = [reasons.get((kernel.graph, name)) for name in kernel.origins]
            found = [one for one in lowered if one and not one.fallback.startswith(_LIBRARY)]
            if found:
                # an operator of another library never had loops, so it did not fall back
                stayed = "fell back to ATen" if is_aten(step.name) else "stays a call"
                yield cause_of(
                    row,
                    kind="fallback",
                    title=f"{bare(step.name)} {stayed}: {found[0].fallback}",
                    place=place_of(index.recording, next(iter(kernel.locations), None)),
                    notes=("nothing fuses with a library call",),
                )
                break


def copies(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    for row in rows:
        made = [step for step in row.steps if _is_copy(index, step)]
        theirs = [
            operation
            for operation in row.operations
            if bare(operation.operation) in _COPIES and operation.launches
        ]
        spent = sum(step.time.median for step in made if step.time)
        seconds = spent - sum(operation.time.median for operation in theirs if operation.time)
        if row.standing != "lost" or len(made) <= len(theirs) or seconds <= row.noise:
            continue
        moved = [step.read_bytes + step.write_bytes for step in made
                 if step.read_bytes is not None and step.write_bytes is not None]  # fmt: skip
        size = f": {bytes_text(sum(moved))}" if len(moved) == len(made) else ""
        rest = [step.name for step in row.steps if step not in made]
        yield cause_of(
            row,
            kind="copies",
            title=f"{plural(len(made) - len(theirs), 'layout copy', 'layout copies')} "
            f"that eager does not make{size}",
            seconds=min(seconds, row.difference),
            notes=(f"{seconds_text(spent)} in {named(step.name for step in made)}",)
            + ((f"made for {named(rest)}",) if rest else ()),
            fixes=(
                Advice(
                    text="Inductor chooses convolution layouts; this keeps the model's",
                    code="torch._inductor.config.layout_optimization = False",
                ),
            )
            if any("convolution" in name for name in rest)
            else (),
            suggestions=other_engine(index),
        )


def _is_copy(index: Index, step: CompiledStep) -> bool:
    kernel = index.kernel_of(step)
    if step.kind == "kernel" and kernel is not None:
        return kernel_label(kernel) == "copy"
    return bare(step.name) in _COPIES


def libraries(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    for row in rows:
        ours = [step for step in row.steps if _multiplies(step)]
        theirs = [operation for operation in row.operations if is_product(operation.operation)]
        if row.standing != "lost" or not ours or not theirs:
            continue
        here = [kernel for step in ours for kernel in step.kernels] or [s.name for s in ours]
        there = [k for operation in theirs for k in operation.kernels] or [
            operation.operation for operation in theirs
        ]
        if {bare(one) for one in here} == {bare(one) for one in there}:
            continue
        yield cause_of(
            row,
            kind="library",
            title=f"the product runs in {named(list(dict.fromkeys(here)), 2)} "
            f"instead of eager's {named(list(dict.fromkeys(there)), 2)}",
            suggestions=mode(index, MAX_AUTOTUNE),
        )


def _multiplies(step: CompiledStep) -> bool:
    return is_product(step.name) or "linear" in bare(step.name) or "template" in step.name
