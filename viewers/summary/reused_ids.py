"""Compile ids that torch used again: `torch._dynamo.reset()` restarts them at 0/0.

Records name a compile by its id, so a later compile with the same id takes the earlier one's place.
"""

from __future__ import annotations

from collections import Counter

from compiler.trace.records import FrameEnd, Warned
from viewers.recording import Recording
from viewers.words import plural


def hidden_graphs(recording: Recording) -> Counter[str]:
    """Compile id -> how many compiles that captured a graph are hidden behind a later one.

    Empty for a recording of several parts: each restarts the ids on its own account.
    """
    if recording.engines or recording.runs:
        return Counter()
    captured = Counter(
        end.compile_id for end in recording.all(FrameEnd) if end.status == "compiled"
    )
    return Counter({name: times - 1 for name, times in captured.items() if times > 1})


def hidden_frames(hidden: Counter[str]) -> int:
    """How many frames are hidden: those of one number, at least as often as one of its compiles."""
    most: dict[str, int] = {}
    for name, times in hidden.items():
        frame = name.partition("/")[0]
        most[frame] = max(most.get(frame, 0), times)
    return sum(most.values())


def warning_of(hidden: Counter[str]) -> tuple[Warned, ...]:
    """What a reader has to know: what is shown of an id is of its last compile."""
    if not hidden:
        return ()
    compiles = hidden.total() + len(hidden)
    ids = plural(len(hidden), "compile id")
    message = (
        f"torch._dynamo.reset() restarted the compile ids: {compiles} compiles share "
        f"{ids}. Graphs are counted once a compile; what is "
        "shown of an id can be of another compile with that id"
    )
    return (Warned(message=message),)
