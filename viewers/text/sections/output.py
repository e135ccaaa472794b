"""`--show output`: what the user's program printed, and the failure in full."""

from __future__ import annotations

from tcw.compiler.trace.records import Output, OutputCapped
from tcw.viewers.kit.lines import TextLine, apart, line
from tcw.viewers.kit.table import heading
from tcw.viewers.plain import plain_lines
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import bytes_text


def section(view: SectionView) -> list[TextLine]:
    blocks = []
    failure = view.summary.failure
    if failure is not None:
        traceback = _text(view.recording.text(failure.traceback))
        blocks.append([heading("failure", failure.type), *_text(failure.message), *traceback])
    for stream in ("stdout", "stderr"):
        body = "".join(out.text for out in view.recording.all(Output) if out.stream == stream)
        capped = [one for one in view.recording.all(OutputCapped) if one.stream == stream]
        note = f"kept up to {bytes_text(capped[0].cap_bytes)}" if capped else ""
        if body:
            blocks.append([heading(stream, note), *_text(body)])
    return apart(blocks) or [heading("output", "the program printed nothing")]


def _text(body: str) -> list[TextLine]:
    rows = plain_lines(body.rstrip("\n")) if body else []
    return [line("  ", row, hang=2) for row in rows]
