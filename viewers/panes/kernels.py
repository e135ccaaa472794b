"""The kernels of one compile: generated code and library calls, with the lines they come from."""

from __future__ import annotations

from compiler.trace import refs
from compiler.trace.records import Kernel
from viewers.kit.cells import cut, pad
from viewers.kit.spans import Line, Role, text
from viewers.panes.kernel_names import kernel_name
from viewers.panes.profile_source import kernel_seconds
from viewers.panes.rows import BLANK, Content, Row, empty
from viewers.panes.targets import ToKernel
from viewers.panes.view import LANGUAGES, View
from viewers.plain import plain
from viewers.words import bytes_text, numbers_text, plural, seconds_text

WIDE = 56
"""From this width on loop nests and registers are shown."""


def content(view: View, width: int) -> Content:
    kernels = view.facts.kernels_of.get(view.compile_id, [])
    real = [kernel for kernel in kernels if not kernel.predicted]
    predicted = [kernel for kernel in kernels if kernel.predicted]
    if not kernels:
        why = f"no kernel of {view.compile_id or 'this recording'} was recorded"
        next_step = view.not_reached("codegen")
        return Content("kernels", view.compile_id, rows=empty(width, why, next_step))
    wide = width >= WIDE
    column = max(10, width - (34 if wide else 21))
    column = min(max(len(kernel_name(view.facts, kernel)) for kernel in kernels) + 1, column)
    graphs = list(dict.fromkeys(kernel.graph for kernel in real))
    rows: list[Row] = []
    for graph in graphs:
        if len(graphs) > 1:
            half = "backward" if "backward" in graph else "forward"
            rows += [*([BLANK] if rows else []), Row(body=((f" {half}", "dim"),))]
        rows += [_row(view, kernel, column, wide) for kernel in real if kernel.graph == graph]
    if predicted:
        words = " predicted for a GPU that was not there"
        rows += [*([BLANK] if rows else []), Row(body=((words, "dim"),))]
        rows += [_row(view, kernel, column, wide) for kernel in predicted]
    calls = sum(kernel.language == "aten" for kernel in real)
    words = f"{len(real) - calls} generated, {plural(calls, 'library call' if wide else 'call')}"
    right: Line = ((words, "dim"),)
    start = str(ToKernel(view.kernel)) if view.kernel else ""
    return Content("kernels", view.compile_id, right, rows, start, tracks=bool(start))


def _row(view: View, kernel: Kernel, column: int, wide: bool) -> Row:
    role: Role = "dim" if kernel.language == "aten" else "text"
    lines = numbers_text(place.line for place in kernel.locations)
    if kernel.language == "aten":
        facts = "call"
    else:
        facts = LANGUAGES[kernel.language]
        if kernel.loop_nests and wide:
            facts += f"  {plural(kernel.loop_nests, 'nest')}"
        binary = view.facts.binaries.get(kernel.id)
        if binary is not None and binary.registers is not None and wide:
            facts += f"  {binary.registers} registers"
            spilled = binary.spill_bytes
            facts += f"  {bytes_text(spilled)} spilled" if spilled else ""
    seconds = kernel_seconds(view, kernel.id)
    if seconds is not None:
        facts = f"{facts}  {seconds_text(seconds)}" if wide else seconds_text(seconds)
    return Row(
        gutter=(text(f"{kernel.id:>4} ", "faint"),),
        body=(
            text(pad(cut(plain(kernel_name(view.facts, kernel)), column - 1), column), role),
            text(pad(lines or "no line", 9), "faint"),
        ),
        right=(text(f" {facts} ", "dim"),),
        ref=refs.kernel(kernel.id),
        at=ToKernel(kernel.id),
        opens=ToKernel(kernel.id),
        copies=kernel.name,
    )
