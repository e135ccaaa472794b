"""Whether operations are computed in one kernel, asked by name or by source line."""

from __future__ import annotations

import re

from tcw.compiler.trace.records import Kernel
from tcw.viewers.labels import operations_of
from tcw.viewers.recording import Recording


def named_together(recording: Recording, group: str) -> bool:
    """Whether one generated kernel computes all of `softmax + add` or `gpt.py:12 + gpt.py:13`."""
    return fused(recording, *(one.strip() for one in group.split("+")))


def fused(recording: Recording, *what: str) -> bool:
    """Whether one generated kernel computes each of these: names of operations (`softmax`),
    scheduler nodes (`op3`) or source lines (`gpt.py:12`, `:12`). If a GPU's code is predicted, it
    is the code that is meant."""
    kernels = recording.kernels.values()
    predicted = any(kernel.predicted for kernel in kernels)
    return any(
        all(_computes(kernel, one) for one in what)
        for kernel in kernels
        if kernel.generated and kernel.predicted == predicted
    )


_LINE = re.compile(r"(.*):(\d+)")


def _computes(kernel: Kernel, what: str) -> bool:
    at = _LINE.fullmatch(what)
    if at is not None:
        file, line = at[1], int(at[2])
        return any(
            place.line == line and (not file or place.file.endswith(f"/{file}"))
            for place in kernel.locations
        )
    if what in kernel.nodes or what in kernel.origins:
        return True
    return what.replace("_", " ") in operations_of(kernel.label)
