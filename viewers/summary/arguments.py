"""Arguments of a call in words."""

from __future__ import annotations

from tcw.compiler.trace.records import CallStart, Graph
from tcw.viewers.recording import Recording
from tcw.viewers.words import shape_text, tensor_text


def gpu_of(recording: Recording) -> str:
    """Name of the GPU that a call's tensors were on; of a program, whose calls are not recorded,
    those of a captured graph. "" if none were."""
    machine = recording.environment
    tensors = [one.tensor for start in recording.all(CallStart) for one in start.arguments]
    if recording.settings is not None and recording.settings.program:
        graphs = (one for one in recording.all(Graph) if one.kind == "captured")
        tensors += [node.value for graph in graphs for node in graph.nodes]
    on_gpu = any(one is not None and one.device.startswith("cuda") for one in tensors)
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
