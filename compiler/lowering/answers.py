"""Graph outputs that are views: an alias of memory that the caller has or receives stays a view.

AOTAutograd regenerates such an output from its base and reads the storage offset from ours, so
returning a copy would be silently wrong.
"""

from __future__ import annotations

from typing import Any

from compiler.loops.graph import Operand
from compiler.loops.sizes import add
from compiler.lowering.builder import logical_strides
from compiler.lowering.sizes import Sizes
from compiler.lowering.tensors import Meta, Tensor


def as_view_of(
    root: Tensor, root_meta: Meta, start: Any, shown: Tensor, meta: Meta, sizes: Sizes
) -> Operand | None:
    """The output as a view with the strides that torch predicts, for layouts that do not compose.

    Layouts fail to compose if a symbolic start is not known to stay inside its dimension. `start`
    is the offset of the view from the tensor `root`, whose memory it shows, in elements (SymInt).
    Returns None if the value's memory layout is not what torch expects.
    """
    if shown.value != root.value or shown.dtype != root.dtype or 0 in (*shown.shape, *root.shape):
        return None
    strides = logical_strides(root)
    if strides is None or any(
        size != 1 and stride != wanted
        for size, stride, wanted in zip(root.shape, strides, root_meta.strides, strict=True)
    ):
        return None
    first = root.view[0].offset if root.view else 0
    return Operand(shown.value, shown.dtype, shown.shape, meta.strides, add(first, sizes.of(start)))
