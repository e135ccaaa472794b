"""The number of loop nests of a generated kernel, from its code.

A C++ function of Inductor (torch/_inductor/codegen/cpp.py, `KernelGroup`) has a nest for each node
generated into it: loops over `int64_t`, where everything fused at an outer loop shares that loop,
or a block without loops for a single element. Loops over `int` set up and combine the accumulators
of threads and lanes; they belong to the adjacent nest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

_NEST = re.compile(r"for\s*\(\s*(int64_t|long)\b")
_HELPER = re.compile(r"for\s*\(")
_NO_WORK = re.compile(r"#|//|int tid\b")
"""Lines of a block that compute nothing: pragmas, comments, the thread number."""
_PART = re.compile(r"^\s*num_xblocks_(\d+)\s*=", re.MULTILINE)


@dataclass
class _Block:
    kind: Literal["plain", "nest", "helper", "shared"]
    works: bool = False
    """The block itself contains a statement."""
    inner: list[_Block] = field(default_factory=list)

    def nests(self) -> int:
        if self.kind in ("nest", "helper"):
            return int(self.kind == "nest")
        found = sum(block.nests() for block in self.inner)
        return found or int(self.works and self.kind == "plain")


def nests_of(text: str, language: str) -> int:
    """The number of loop nests of a kernel; 0 for a library call."""
    if not text or language == "aten":
        return 0
    return nests_of_cpp(text) if language == "cpp" else nests_of_triton(text)


def nests_of_cpp(text: str) -> int:
    """A nest that computes a single element counts, although it has no loop."""
    start = text.find('extern "C"')
    top = _Block("shared")
    open_blocks = [top]
    coming: Literal["plain", "nest", "helper", "shared"] = "shared"  # the function itself
    for line in text[max(start, 0) :].splitlines():
        words = line.strip()
        if words == "{":
            block = _Block(coming)
            open_blocks[-1].inner.append(block)
            open_blocks.append(block)
            coming = "plain"
        elif words.startswith("}"):
            if len(open_blocks) > 1:
                open_blocks.pop()
        elif _NEST.match(words):
            coming = "nest"
        elif _HELPER.match(words):
            coming = "helper"
        elif words.startswith(("#pragma omp parallel", "#pragma omp single")):
            coming = "shared"
        elif words and not _NO_WORK.match(words):
            open_blocks[-1].works = True
            if words.endswith("{"):
                open_blocks.append(_Block("plain"))
                open_blocks[-2].inner.append(open_blocks[-1])
    return top.nests()


def nests_of_triton(text: str) -> int:
    """One, or one per part of a combo kernel (torch/_inductor/codegen/triton_combo_kernel.py)."""
    return max(1, len(set(_PART.findall(text))))
