"""The label of a region: the calls of the user's program, and which of them it only casts for.

Under autocast a `linear` is casts of its matrices and a product, each a region of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcw.compiler.trace.records import CompiledStep, EagerOperation, Region
from tcw.viewers.summary.profile.causes.words import bare, is_product, split_arguments
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.words import dtype_text

_CASTS = frozenset({"_to_copy", "convert_element_type"})
_ASKED = frozenset({"to", "float", "half", "double", "bfloat16", "type as", "to copy"})
"""Words for calls that are explicit casts."""
_WORK = frozenset({"convolution", "conv1d", "conv2d", "conv3d"})
_DTYPE = re.compile(r"torch\.(\w+)")


def region_label(index: Index, region: Region) -> str:
    """`linear: cast to bf16` if it does nothing else; `relu + linear: cast to bf16`."""
    operations = [one for one in index.operations_in(region) if one.launches]
    steps = index.steps_in(region)
    names = [one.operation for one in operations]
    for step in steps:
        names += [node.target for node in index.nodes_of(step)] or [step.name]
    casts = [bare(name) in _CASTS for name in names]
    if not any(casts):
        return region.label
    dtypes = {*map(_dtype, operations), *(d for step in steps for d in _cast_to(index, step))} - {
        ""
    }
    to = f"cast to {dtype_text(dtypes.pop())}" if len(dtypes) == 1 else "casts"
    if all(casts):
        return region.label if region.label in _ASKED else f"{region.label}: {to}"
    if any(map(_is_work, names)) or region.label.endswith(" backward"):
        return region.label
    parts = region.label.split(" + ")
    return " + ".join(f"{part}: {to}" if _is_work(part) else part for part in parts)


def _is_work(name: str) -> bool:
    return is_product(name) or bare(name) in _WORK


def _dtype(operation: EagerOperation) -> str:
    """`bfloat16` of `_to_copy(f32[4], dtype=torch.bfloat16)`."""
    given = split_arguments(operation.arguments)[1].get("dtype", "")
    match = _DTYPE.search(given) if bare(operation.operation) in _CASTS else None
    return match[1] if match else ""


def _cast_to(index: Index, step: CompiledStep) -> Iterator[str]:
    for node in index.nodes_of(step):
        if bare(node.target) in _CASTS and node.value is not None:
            yield node.value.dtype
