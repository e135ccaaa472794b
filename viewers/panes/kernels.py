"""The kernels of one compile: generated code and calls, with the lines they come from."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Kernel
from tcw.viewers.kit.spans import Line
from tcw.viewers.labels import calls_text
from tcw.viewers.panes.rows import BLANK, Content, Row, empty
from tcw.viewers.panes.targets import ToKernel
from tcw.viewers.panes.view import View
from tcw.viewers.summary.kernels import KernelRow
from tcw.viewers.tables.kernels import kernels_lines
from tcw.viewers.words import plural

WIDE = 56
"""From this width on the title has room for whole words."""


def content(view: View, width: int) -> Content:
    kernels = view.recording.kernels_of.get(view.compile_id, [])
    if not kernels:
        why = f"no kernel of {view.compile_id or 'this recording'} was recorded"
        next_step = view.not_reached("codegen")
        return Content("kernels", view.compile_id, rows=empty(width, why, next_step))
    wanted = {kernel.id for kernel in kernels}
    listed = [row for row in view.summary.kernels.rows if row.kernel.id in wanted]
    listed.sort(key=lambda row: row.kernel.predicted != view.for_gpu)
    rows: list[Row] = []
    real = [row.kernel for row in listed if not row.kernel.predicted]
    halves = len({kernel.graph for kernel in real}) > 1
    first = [row.kernel for row in listed if row.kernel.predicted == listed[0].kernel.predicted]
    title = ""
    for row, body in zip(listed, _lines(view, listed, width), strict=True):
        above = _title(row.kernel, halves, first[0].predicted)
        if above != title:
            title = above
            rows += [*([BLANK] if rows else []), Row(body=((f" {above}", "dim"),))]
        rows.append(_row(row.kernel, body))
    calls = [kernel.language for kernel in first if not kernel.generated]
    words = f"{len(first) - len(calls)} generated"
    if calls:
        words += f", {calls_text(calls) if width >= WIDE else plural(len(calls), 'call')}"
    start = str(ToKernel(view.kernel)) if view.kernel else ""
    right: Line = ((words, "dim"),)
    return Content("kernels", view.compile_id, right, rows, start, tracks=bool(start))


def _lines(view: View, listed: Sequence[KernelRow], width: int) -> list[Line]:
    profile = view.derived.profile
    lines = kernels_lines(
        listed,
        view.derived.names,
        width - 1,
        1,
        main=view.derived.main_file,
        seconds=profile.kernel_seconds if profile is not None else None,
        in_pane=True,
    )
    return [one.spans for one in lines]


def _title(kernel: Kernel, halves: bool, second: bool) -> str:
    """The heading above a kernel; `second`: built kernels follow predicted ones."""
    if kernel.predicted:
        return "predicted for a GPU that was not there"
    half = ("backward" if "backward" in kernel.graph else "forward") if halves else ""
    return " ".join(filter(None, (half, "built for the CPU"))) if second else half


def _row(kernel: Kernel, body: Line) -> Row:
    return Row(
        body=body,
        ref=refs.kernel(kernel.id),
        at=ToKernel(kernel.id),
        copies=kernel.name,
    )
