"""A kernel whose results are wrong: said before anything about its time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.trace import refs
from compiler.trace.records import Advice, KernelPrecision, Location
from viewers.labels import kernel_label
from viewers.summary.place import place_of
from viewers.summary.profile.causes.cause import Cause
from viewers.summary.profile.index import Index
from viewers.summary.profile.rows import RegionRow
from viewers.words import error_text, plural


def wrong_results(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    wrong = [one for one in index.recording.all(KernelPrecision) if one.within is False]
    if not wrong:
        return
    first = wrong[0]
    kernel = index.recording.kernels.get(first.kernel)
    worst = max(first.outputs, key=lambda one: one.error / (one.bound or 1e-30), default=None)
    name = f"{kernel.name} ({kernel_label(kernel)})" if kernel else first.kernel
    title = f"{first.kernel} {name} computes wrong results" if kernel else f"{name} is wrong"
    notes = []
    if worst is not None:
        title += f": {worst.node} is off by {error_text(worst.error)}"
        notes.append(
            f"relative to its largest value, against float64; eager is off by "
            f"{error_text(worst.eager_error)}, {error_text(worst.bound)} is let pass"
        )
        if worst.note:
            notes.append(worst.note)
    if first.reason:
        notes.append(first.reason)
    if len(wrong) > 1:
        notes.append(f"{plural(len(wrong) - 1, 'later kernel')} err too")
    places: tuple[Location, ...] = kernel.locations if kernel else ()
    yield Cause(
        kind="precision",
        title=title,
        seconds=0.0,
        place=place_of(index.recording, places[0]) if places else None,
        notes=tuple(notes),
        fixes=(
            Advice(
                text="writes a file that runs this kernel's graph alone and shows the error",
                code=f"tcw repro TRACE --kernel {first.kernel}",
            ),
        )
        if first.repro
        else (),
        refs=(refs.kernel(first.kernel),),
    )
