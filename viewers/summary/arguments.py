"""Arguments of a call in words."""

from __future__ import annotations

from compiler.trace.records import CallStart
from viewers.recording import Recording
from viewers.words import shape_text, tensor_text


def gpu_of(recording: Recording) -> str:
    """Name of the GPU that a call's tensors were on; "" if none were."""
    machine = recording.environment
    on_gpu = any(
        argument.tensor is not None and argument.tensor.device.startswith("cuda")
        for start in recording.all(CallStart)
        for argument in start.arguments
    )
    return machine.gpu or "cuda" if on_gpu and machine else ""


def arguments_of(start: CallStart) -> dict[str, str]:
    """Name -> `f32 4×128×256`, or the description of the value."""
    return {
        argument.name: tensor_text(argument.tensor) if argument.tensor else argument.value
        for argument in start.arguments
    }


def short_arguments_of(start: CallStart) -> dict[str, str]:
    """Name -> `4×128×256`, or the description of the value."""
    return {
        argument.name: shape_text(argument.tensor.shape) if argument.tensor else argument.value
        for argument in start.arguments
    }
