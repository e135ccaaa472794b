"""Wrong results, of a kernel or of a stage before: reported before anything about time."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from tcw.compiler.trace.precision import worst_output
from tcw.compiler.trace.records import Advice, KernelPrecision, WrongStage
from tcw.viewers.command_line import command_line, near
from tcw.viewers.labels import kernel_label
from tcw.viewers.summary.place import place_of
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.summary.wrong_stage import stage_words
from tcw.viewers.words import error_text, plural

KEPT = "run.tcw"
"""The trace in the suggested command line if the run keeps none."""


def wrong_results(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    wrong = [
        precision for precision in index.recording.all(KernelPrecision) if precision.within is False
    ]
    if not wrong:
        stage = index.recording.last(WrongStage)
        if stage is not None:
            title = f"results are wrong: {stage_words(index.recording, stage)}"
            place = place_of(index.recording, stage.location)
            yield Cause(kind="precision", title=title, seconds=0.0, place=place)
        return
    first = wrong[0]
    kernel = index.recording.kernels.get(first.kernel)
    worst = worst_output(first)
    name = f"{kernel.name} ({kernel_label(kernel)})" if kernel else first.kernel
    title = f"{first.kernel} {name} computes wrong results" if kernel else f"{name} is wrong"
    notes = []
    if worst is not None:
        title += f": {worst.node} is off by {error_text(worst.error)}"
        notes.append(
            f"relative to its largest value, against float64; eager is off by "
            f"{error_text(worst.eager_error)}, the bound is {error_text(worst.bound)}"
        )
        if worst.note:
            notes.append(worst.note)
    if first.reason:
        notes.append(first.reason)
    if len(wrong) > 1:
        notes.append(f"{plural(len(wrong) - 1, 'later kernel')} wrong too")
    location = next(iter(kernel.locations), None) if kernel else None
    yield Cause(
        kind="precision",
        title=title,
        seconds=0.0,
        place=place_of(index.recording, location),
        notes=tuple(notes),
        fixes=(_file_of(index, first.kernel),) if first.repro else (),
    )


def _file_of(index: Index, kernel: str) -> Advice:
    """The command lines that write the kernel's graph as a file. The file's text is in the trace,
    so the trace has to be kept."""
    text = "writes a file that runs only this kernel's graph and shows the error"
    recording = index.recording
    file = recording.file
    repro = shlex.join(["tcw", "repro", near(str(file)) if file else KEPT, "--kernel", kernel])
    if file is not None or recording.start is None:
        return Advice(text=text, code=repro)
    options = ("--verify", "--trace", KEPT)
    again = command_line("profile", recording.start.settings, options)
    return Advice(text=f"the second {text}", code=f"{again}\n{repro}")
