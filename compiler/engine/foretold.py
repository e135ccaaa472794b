"""Enforces the strides that fake tensors predicted, in a graph that runs uncompiled on ATen.

A library may return other strides than the operation's fake tensor has (torch 2.11's FFTs do).
AOTAutograd promised the caller the strides of the outputs, and a view was traced with those of its
base. In such places, a tensor with other strides is copied. Compiled graphs do the same in their
wrapper's text (compiler/runtime/wrapper.py).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from compiler.runtime.wrapper_helpers import laid_out, row_by_row


def keep_foretold_strides(graph: fx.Graph) -> None:
    """Insert, once and in place, a check after each operation whose strides matter."""
    for node in dict.fromkeys(_relied_on(graph)):
        check = _check(node) if _makes_memory(node) else None
        if check is None or any(user.target in (laid_out, row_by_row) for user in node.users):
            continue
        function, arguments = check
        with graph.inserting_after(node):
            checked = graph.call_function(function, (node, *arguments))
        checked.meta = dict(node.meta)
        node.replace_all_uses_with(checked, lambda user, checked=checked: user is not checked)


def _relied_on(graph: fx.Graph) -> Iterator[fx.Node]:
    """The bases of views, and the graph's outputs."""
    for node in graph.nodes:
        if node.op == "output" or _is_view(node):
            yield from node.all_input_nodes


def _is_view(node: fx.Node) -> bool:
    """Whether a result is in the memory of an argument."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(one.alias_info is not None for one in schema.returns)


def _makes_memory(node: fx.Node) -> bool:
    if node.op == "call_function" and node.target is operator.getitem:
        maker = node.args[0]
        return isinstance(maker, fx.Node) and _makes_memory(maker)
    return isinstance(node.target, torch._ops.OpOverload) and not _is_view(node)


def _check(node: fx.Node) -> tuple[Any, tuple[Any, ...]] | None:
    """A helper, with arguments, that gives the tensor its predicted strides. None if the strides
    are symbolic and not those of a contiguous tensor."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    sizes, strides = tuple(value.shape), tuple(value.stride())
    if all(type(one) is int for one in (*sizes, *strides)):
        return laid_out, (sizes, strides)
    width: Any = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if str(stride) != str(width):
            return None
        width = width * size
    return row_by_row, ()
