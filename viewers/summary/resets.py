"""What to know about names of compiles after `torch._dynamo.reset()`."""

from __future__ import annotations

from compiler.trace.compile_names import RESET
from compiler.trace.records import FrameStart, Warned
from viewers.recording import Recording
from viewers.words import plural


def reset_notes(recording: Recording) -> tuple[Warned, ...]:
    """One that explains the names; () where torch's ids are unique."""
    found = (RESET.match(one.compile_id) for one in recording.all(FrameStart))
    resets = max((int(one["resets"]) for one in found if one), default=0)
    if not resets:
        return ()
    message = (
        f"torch._dynamo.reset() restarted torch's compile ids {plural(resets, 'time')}: "
        "r1.0/0 is the 0/0 after the first reset"
    )
    return (Warned(message=message),)
