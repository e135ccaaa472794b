"""Arguments that an operation may overwrite, because its result only replaces their content."""

from __future__ import annotations

import operator

import torch
from torch import fx

from tcw.compiler.lowering.calls import operation

_OVERWRITES = frozenset(
    {
        torch.ops.aten.index_put,
        torch.ops.aten._unsafe_index_put,
        torch.ops.aten.index_copy,
        torch.ops.aten.index_add,
        torch.ops.aten.index_fill,
        torch.ops.aten.index_reduce,
        torch.ops.aten.scatter,
        torch.ops.aten.scatter_add,
        torch.ops.aten.scatter_reduce,
        torch.ops.aten.slice_scatter,
        torch.ops.aten.select_scatter,
        torch.ops.aten.diagonal_scatter,
    }
)
"""They return their first argument with some elements replaced."""


def replacing(nodes: list[fx.Node], written: list[fx.Node]) -> set[fx.Node]:
    """The operations in `_OVERWRITES` that may overwrite their argument.

    Nothing reads the old content afterwards. Either the argument is an input of which the result
    becomes the new content (by a final `copy_`), or it is itself the result of such an operation:
    memory of the graph's own.
    """
    found: set[fx.Node] = set()
    place = {node: i for i, node in enumerate(nodes)}
    for copy_ in written:
        target, source = copy_.args[:2]
        in_place = target.op == "placeholder" and _overwrites(source) and source.args[0] is target
        if in_place and not _read_later(target, source, copy_, place):
            found.add(source)
    for node in nodes:
        again = _overwrites(node) and _overwrites(node.args[0]) and node not in found
        if again and not _read_later(node.args[0], node, None, place):
            found.add(node)
    return found


def _overwrites(node: fx.Node) -> bool:
    return getattr(node.target, "overloadpacket", None) in _OVERWRITES


def _read_later(
    target: fx.Node, source: fx.Node, copy_: fx.Node | None, place: dict[fx.Node, int]
) -> bool:
    """Whether anything but `source` and `copy_` reads the target, or a view of it, after `source`
    began, which includes the graph's outputs."""
    here = place[source]
    views = [target]
    for view in views:
        for user in view.users:
            if user is copy_ or (user is source and view is target):
                continue
            if place.get(user, here) >= here:
                return True
            if user.target is operator.getitem or _may_show(user):
                views.append(user)
    return False


def _may_show(user: fx.Node) -> bool:
    """Whether the value of `user` may be a view of its argument's memory."""
    if user.op != "call_function" or isinstance(user.target, torch._ops.HigherOrderOperator):
        return True
    return bool(operation(user.target).shares)
