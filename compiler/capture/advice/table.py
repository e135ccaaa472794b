"""Which advice goes with which break: the first family that has an answer gives it."""

from __future__ import annotations

from compiler.capture.advice.broken import Broken
from compiler.trace.records import Advice


def advise(broken: Broken) -> tuple[Advice, ...]:
    """Our advice where we have a better one, else torch's own hints."""
    return tuple(Advice(text=hint, by="torch") for hint in broken.hints)
