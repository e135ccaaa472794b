"""The text of `tcw profile`: the answer and its cause first, then the regions, then why."""

from __future__ import annotations

from viewers.recording import Recording
from viewers.summary.profile import Sort, profiles_of
from viewers.text.lines import Line, line


def profile(
    recording: Recording,
    width: int = 100,
    height: int = 40,
    *,
    sort: Sort = "difference",
    top: int | None = None,
    trace: str = "",
) -> list[Line]:
    """The lines for a terminal of `width` × `height` cells.

    `sort`: order of the regions; `top`: as many of them as are shown; `trace`: the file that the
    recording is in, where it is kept.
    """
    found = profiles_of(recording)
    if not found:
        return [line("nothing was profiled")]
    return [line((one.verdict.headline, "strong"), ": ", one.verdict.detail) for one in found]
