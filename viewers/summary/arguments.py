"""Arguments of a call in words."""

from __future__ import annotations

from compiler.trace.records import CallStart
from viewers.words import tensor_text


def arguments_of(start: CallStart) -> dict[str, str]:
    """Name -> `f32 4×128×256`, or the value as it was described."""
    return {
        argument.name: tensor_text(argument.tensor) if argument.tensor else argument.value
        for argument in start.arguments
    }
