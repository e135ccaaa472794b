"""Which stage makes a call's results wrong, in words."""

from __future__ import annotations

from tcw.compiler.trace.records import WrongStage
from tcw.viewers.labels import kernel_label
from tcw.viewers.recording import Recording

_GRAPHS = {
    "capture": "TorchDynamo captures another computation than the model's",
    "autograd": "AOTAutograd or its decompositions change what is computed",
    "passes": "the engine's passes over its graphs change what is computed",
}
_STAGES = ("capture", "autograd", "passes")


def stage_words(recording: Recording, found: WrongStage) -> str:
    """`AOTAutograd or its decompositions change what is computed: the first value that eager does
    not have is of gelu (mul_2 of 0/1/forward)`."""
    unknown = f": {found.reason}" if found.reason else ""
    if found.stage in _GRAPHS:
        words = _GRAPHS[found.stage]
        if found.node:
            operation = found.operation.removeprefix("aten.").removesuffix(".default")
            first = f"{operation} ({found.node} of {found.graph})"
            return f"{words}: the first value that eager does not have is of {first}{unknown}"
        where = f" (graph {found.graph})" if found.graph else ""
        return f"{words}{where}{unknown}"
    if found.kernel:
        kernel = recording.kernels.get(found.kernel)
        name = f"{found.kernel} ({kernel_label(kernel)})" if kernel is not None else found.kernel
        return f"its graphs are right: kernel {name} is wrong"
    if found.stage:
        return f"its graphs are right; {found.reason}"
    right = " and ".join(stage for stage in _STAGES if stage in found.right)
    so_far = f"{right} right; " if right else ""
    return f"{so_far}which stage is wrong was not found{unknown}"
