"""Failing minimum cuts: keep torch's files out of the user's folder, and keep its explanation.

If no cut exists, `solve_min_cut` (torch/_functorch/partitioners.py) writes the joint graph to the
working folder before it raises; `_get_unique_path` names the files. An override that recomputes a
value may ask for such a cut. The trace has the graph anyway.
"""

from __future__ import annotations

import os
import re
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, patch
from tcw.compiler.control.recorder import Recorder

_NAMES = "_get_unique_path"
_CONFLICT = re.compile(r"Nodes involved in the conflict:\n(.*?)(?:\n\n|\Z)", re.DOTALL)
_LONGEST = 300


def why_failed(error: BaseException) -> str:
    """torch's explanation of a failed cut on one line: each node with its constraints."""
    text = str(error).strip()
    conflict = _CONFLICT.search(text)
    if conflict is None:
        first = text.splitlines()[0] if text else "no reason given"
        return f"{type(error).__name__}: {first[:_LONGEST]}"
    found: dict[str, list[str]] = {}
    for line in map(str.strip, conflict[1].splitlines()):
        if line.startswith("- ") and found:
            found[list(found)[-1]].append(line.removeprefix("- "))
        elif line:
            found[line.removesuffix(":")] = []
    said = "; ".join(f"{name}: {', '.join(dict.fromkeys(its))}" for name, its in found.items())
    return f"a value can neither be saved nor computed again: {said}"[:_LONGEST]


def without_files() -> Uninstall:
    """Suppress the files that a failing cut writes."""
    import torch._functorch.partitioners as partitioners

    def nowhere(*_: Any, **__: Any) -> str:
        return os.devnull

    return patch(partitioners, _NAMES, nowhere) if hasattr(partitioners, _NAMES) else lambda: None


def install(recorder: Recorder) -> Uninstall:
    return without_files()


HOOK = RecordingHook(
    name="failed cuts",
    offers="nothing of a partitioner that fails is written into the working folder",
    needs=(f"torch._functorch.partitioners:{_NAMES}",),
    install=install,
    stage="autograd",
    test="autograd/test_save.py",
)
