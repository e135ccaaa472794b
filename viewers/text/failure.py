"""What is said first where the model failed, timed out or was interrupted."""

from __future__ import annotations

from viewers.places import FileNames
from viewers.recording import Recording
from viewers.summary import Summary, place_of
from viewers.text.code import place_lines
from viewers.text.header import file_name
from viewers.text.lines import Line, line


def failure_lines(
    recording: Recording, summary: Summary, names: FileNames, width: int
) -> list[Line]:
    """The failure: where, whose fault as far as that was tried, the line, the message, the hint."""
    failure = summary.failure
    if failure is None:
        verdict = summary.verdict
        detail = f": {verdict.detail}" if verdict.detail else ""
        lines = [line((f"{file_name(summary)} {verdict.headline}", "lost"), detail, hang=2)]
        if summary.doing:
            lines.append(line(("  last seen in ", "dim"), summary.doing, hang=2))
        return lines
    blame = {
        True: ". Eager fails too: torch.compile is not the cause",
        False: ". Eager works: torch.compile is the cause",
        None: "",
    }[failure.eager_fails]
    if failure.culprit == "tcw":
        blame = ". This is a fault of tcw, not of the model"
    lines = [
        line((f"{file_name(summary)} failed in {failure.doing}", "lost"), (blame, "strong"), hang=2)
    ]
    place = place_of(recording, failure.location, failure.source_line)
    if place is not None:
        lines += place_lines(place, names, 2, width)
    first, *rest = failure.message.strip().split("\n") if failure.message.strip() else [""]
    lines.append(line("  ", (failure.type, "strong"), f": {first}" if first else "", hang=4))
    lines += [line("    ", row, hang=4) for row in rest[:3] if row.strip()]
    if len(rest) > 3:
        lines.append(line("    ", (f"… {len(rest) - 3} more lines: --show output", "dim")))
    if failure.hint:
        lines.append(line("  ", (failure.hint, "won"), hang=2))
    return lines
