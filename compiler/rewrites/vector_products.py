"""The vector-product pass: products with a vector become a multiplication and a sum.

In a product of a matrix with a vector, or of two vectors, each element of the matrix is used once.
It is limited by memory: a loop nest reads it as fast as a library does, fuses with what makes its
factors and with what reads its result, and costs no call per batch. A 16-bit product is summed in
float32, as ATen does, and without ATen's conversion of each factor in memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import fx

from tcw.compiler.rewrites.subject import Subject, add_call, choose

aten = torch.ops.aten

KIND = "library"
LOOPS = "loops"
ATEN = "aten"
MEANS = "an ATen call, which nothing is fused with"
RULE = "memory-bound"

_WHOLE = (torch.int32, torch.int64)
"""ATen sums narrower integers faster than a loop that widens them."""
_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, *_WHOLE)
_NARROW = (torch.float16, torch.bfloat16)
_TARGETS = (aten.bmm.default, aten.mv.default, aten.dot.default, aten.vdot.default)


def vector_products(subject: Subject) -> int:
    """Rewrite the graph in place and return the number of products that became loops."""
    moved, module = 0, subject.module
    for node in list(module.graph.nodes):
        if node.target not in _TARGETS:
            continue
        factors = [_value(arg) for arg in node.args]
        side = _vector_side(node.target, factors)
        if not side or not _wanted(subject, node):
            continue
        with module.graph.inserting_before(node):
            _rewrite(node, side)
        moved += 1
    return moved


def _value(node: Any) -> torch.Tensor | None:
    """A node's result if it is a dense real tensor on the CPU, else None."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value if value.dtype in _DTYPES and value.device.type == "cpu" else None


def _vector_side(target: Any, factors: list[torch.Tensor | None]) -> str:
    """`dot`; `left` or `right`, the factor that is a vector; "" for a product of matrices."""
    left, right = factors
    if left is None or right is None:
        return ""
    if target in (aten.dot.default, aten.vdot.default):
        return "dot"
    if target is aten.mv.default:
        return "mv"
    if _is_one(right.shape[2]):
        return "right"
    return "left" if _is_one(left.shape[1]) else ""


def _is_one(size: Any) -> bool:
    """Whether a size is 1 for every input of this graph."""
    return isinstance(size, int) and size == 1


def _rewrite(node: fx.Node, side: str) -> None:
    step = partial(add_call, node)
    left, right = node.args
    dtype = node.meta["val"].dtype
    narrow = dtype in _NARROW
    if narrow:
        left, right = (
            step(aten._to_copy.default, one, dtype=torch.float32) for one in (left, right)
        )
    if side == "right":  # (b, m, k) @ (b, k, 1)
        right, reduced, place = step(aten.permute.default, right, [0, 2, 1]), 2, 2
    elif side == "left":  # (b, 1, k) @ (b, k, n)
        left, reduced, place = step(aten.permute.default, left, [0, 2, 1]), 1, 1
    else:
        reduced, place = left.meta["val"].dim() - 1, None
    product = step(aten.mul.Tensor, left, right)
    summed_in = {"dtype": dtype} if dtype in _WHOLE else {}
    total = step(aten.sum.dim_IntList, product, [reduced], **summed_in)
    if narrow:
        total = step(aten._to_copy.default, total, dtype=dtype)
    if place is not None:
        total = step(aten.unsqueeze.default, total, place)
    node.replace_all_uses_with(total)
    total.meta = {**node.meta, "val": total.meta["val"]}
    node.graph.erase_node(node)


def _wanted(subject: Subject, node: fx.Node) -> bool:
    sizes = " times ".join(
        " x ".join(map(str, arg.meta["val"].shape)) for arg in node.args if isinstance(arg, fx.Node)
    )
    chosen = choose(
        subject,
        kind=KIND,
        nodes=(node.name,),
        default=LOOPS,
        choices=(LOOPS, ATEN),
        rule=RULE,
        reason=f"{sizes}: each element of the larger factor is used once",
        means=MEANS,
    )
    return chosen == LOOPS
