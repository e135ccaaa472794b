"""The matrix-product pass: which library computes a product of two matrices.

ATen calls MKL for float32. MKL uses its fast paths only on Intel processors. On AMD's, oneDNN takes
half the time; torch includes it for 16-bit floats and convolutions. There, `mm`, and `addmm` with a
row as bias, become oneDNN's linear layer, which computes the same product: x @ weight.T + bias, in
float32, without a packed copy of the weight.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import fx

from tcw.compiler.processor import AMD, vendor
from tcw.compiler.rewrites.subject import Subject, add_call, choose

aten = torch.ops.aten

KIND = "library"
ONEDNN = "onednn"
ATEN = "aten"
MEANS = "a library call either way, never a loop nest: oneDNN's linear layer or ATen's product"

WORTH = 1 << 22
"""Multiplications from which oneDNN's more expensive call (13 instead of 3 µs) pays off."""
ROWS = 8
"""With fewer rows, a product reads its weight once and is limited by memory bandwidth."""


def library_products(subject: Subject) -> int:
    """Rewrite the graph in place and return the number of products that became oneDNN calls."""
    linear = _linear()
    if linear is None or not torch.backends.mkldnn.enabled:
        return 0
    moved, module = 0, subject.module
    for node in list(module.graph.nodes):
        if node.target not in (aten.mm.default, aten.addmm.default):
            continue
        parts = _parts(node)
        if parts is None or not _wanted(subject, node, parts):
            continue
        left, right, bias = parts
        node.target = linear
        with module.graph.inserting_before(node):
            node.args = (left, _transposed(right), bias, "none", [], "")
        node.kwargs = {}
        if not right.users:
            module.graph.erase_node(right)
        moved += 1
    return moved


@cache
def _linear() -> Any:
    """oneDNN's linear layer, if it is available and better than what ATen calls."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return None
    if vendor() != AMD:
        return None
    try:
        return torch.ops.mkldnn._linear_pointwise.default
    except AttributeError:
        return None


def _parts(node: fx.Node) -> tuple[fx.Node, fx.Node, fx.Node | None] | None:
    """The two factors and the bias; None for a product that oneDNN's layer does not support."""
    bias, factors = None, node.args
    if node.target is aten.addmm.default:
        if any(scale != 1 for scale in node.kwargs.values()):
            return None
        bias, *factors = node.args
        value = _value(bias)
        if value is None or value.dim() != 1 or value.stride() != (1,):
            return None
    left, right = factors
    one, other = _value(left), _value(right)
    if one is None or other is None:
        return None
    inner, columns = other.shape
    if bias is not None and _value(bias).shape[0] != columns:
        return None
    if other.stride() not in ((columns, 1), (1, inner)):
        return None
    return left, right, bias


def _value(node: Any) -> Any:
    """A node's result if it is a float32 tensor on the CPU, else None."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value if value.dtype is torch.float32 and value.device.type == "cpu" else None


def _wanted(
    subject: Subject, node: fx.Node, parts: tuple[fx.Node, fx.Node, fx.Node | None]
) -> bool:
    rows, inner = map(_hint, parts[0].meta["val"].shape)
    columns = _hint(parts[1].meta["val"].shape[1])
    work = rows * inner * columns
    default = ONEDNN if work >= WORTH and rows >= ROWS else ATEN
    chosen = choose(
        subject,
        kind=KIND,
        nodes=(node.name,),
        default=default,
        choices=(ONEDNN, ATEN),
        rule="large-product" if default == ONEDNN else "small-product",
        reason=f"{rows} x {inner} times {inner} x {columns}: {work:,} multiplications",
        numbers={"multiplications": work},
        means=MEANS,
    )
    return chosen == ONEDNN


def _hint(size: Any) -> int:
    """A size at tracing time; 0 if unknown."""
    if isinstance(size, int):
        return size
    hint = getattr(size.node, "hint", None)
    return int(hint) if hint is not None else 0


def _transposed(right: fx.Node) -> fx.Node:
    """The layer's weight: the tensor whose transpose is the right factor."""
    if right.target is aten.permute.default and list(right.args[1]) in ([1, 0], [-1, -2]):
        return right.args[0]
    return add_call(right, aten.permute.default, right, [1, 0])
