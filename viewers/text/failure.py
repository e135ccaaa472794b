"""The first lines of the text if the model failed, timed out or was interrupted."""

from __future__ import annotations

from tcw.compiler.trace.records import Failure
from tcw.viewers.kit.lines import TextLine, line, prose
from tcw.viewers.places import FileNames
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary
from tcw.viewers.summary.place import place_of
from tcw.viewers.summary.verdict import during, last_words
from tcw.viewers.tables.places import place_lines
from tcw.viewers.text.header import file_name

MORE = 3
"""Lines of a message shown after the first."""


def failure_lines(
    recording: Recording, summary: Summary, names: FileNames, width: int
) -> list[TextLine]:
    """The failure: where it happened, who caused it if known, the line, the message, the hint."""
    failure = summary.failure
    if failure is None:
        verdict = summary.verdict
        reason = verdict.detail.text
        detail = f": {reason}" if reason else ""
        lines = [line((f"{file_name(summary)} {verdict.headline}", "bad"), detail, hang=2)]
        if summary.doing and not reason:
            lines.append(line(("  last seen in ", "dim"), summary.doing, hang=2))
        return lines
    lines = [
        line(
            (f"{file_name(summary)} {_ended(summary)} {during(failure.doing)}", "bad"),
            (_blame(failure), "strong"),
            hang=2,
        )
    ]
    place = place_of(recording, failure.location, failure.source_line)
    if place is not None:
        lines += place_lines(place, names, 2, width)
    first, *rest = failure.message.strip().splitlines() or [""]
    if failure.evidence and failure.evidence != first:  # a compiler's command line comes before it
        first, rest = failure.evidence, []
    kind = "" if failure.type in ("", summary.status) else failure.type
    gap = ": " if kind and first else ""
    lines.append(line("  ", (kind, "strong"), f"{gap}{first}", hang=4))
    if said := last_words(recording, failure):
        lines.append(line("    ", ("stderr  ", "dim"), said, hang=4))
    rest = [row for row in rest if row.strip()]
    lines += [line("    ", row, hang=4) for row in rest[:MORE]]
    if len(rest) > MORE:
        lines.append(line(("    " + f"… {len(rest) - MORE} more lines: --show output", "dim")))
    if failure.hint:
        lines += prose("  ", failure.hint)
    return lines


def _ended(summary: Summary) -> str:
    """`failed`, or how the process ended."""
    words = {"timeout": "timed out", "crashed": "crashed", "interrupted": "was interrupted"}
    return words.get(summary.status, "failed")


def _blame(failure: Failure) -> str:
    if failure.culprit == "tcw":
        return ". This is a bug in tcw, not in the model"
    if failure.culprit == "machine":
        return ". The machine is the cause, not the model"
    if failure.eager_fails is None:
        return ". torch itself raises this" if failure.culprit == "torch" else ""
    if failure.eager_fails:
        return ". Eager fails too: torch.compile is not the cause"
    return ". Eager works: torch.compile is the cause"
