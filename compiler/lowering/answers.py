"""Where a graph's answer lies: views of memory that the caller has, or gets as well, stay views.

AOTAutograd makes such an answer again from its base and reads from ours where it starts, so that a
copy in its place would be silently wrong.
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
    """A view by the strides that torch foretold, where the view's own layouts do not compose.

    They do not where nobody knows that a symbolic start stays inside of its dimension. `start`: by
    how many elements (SymInt) the view begins after the tensor `root`, whose memory it shows. None
    where the value does not lie as torch thinks.
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
