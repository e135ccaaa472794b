"""What the user's program printed, as far as it explains how it ended."""

from __future__ import annotations

from tcw.compiler.trace.records import Failure, Output
from tcw.viewers.recording import Recording


def last_words(recording: Recording, failure: Failure) -> str:
    """The last line on stderr of a program that ended itself: programs print why, and exit."""
    if failure.type != SystemExit.__name__:
        return ""
    printed = "".join(one.text for one in recording.all(Output) if one.stream == "stderr")
    return next((line.strip() for line in reversed(printed.split("\n")) if line.strip()), "")
