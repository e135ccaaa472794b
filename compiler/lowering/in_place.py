"""Arguments that an operation may overwrite, because its result only replaces their content."""

from __future__ import annotations

import operator

import torch
from torch import fx

from compiler.lowering.calls import operation

_OVERWRITES = frozenset(
    {
        torch.ops.aten.index_put,
        torch.ops.aten._unsafe_index_put,
        torch.ops.aten.index_copy,
        torch.ops.aten.index_add,
        torch.ops.aten.index_fill,
        torch.ops.aten.scatter,
        torch.ops.aten.scatter_add,
        torch.ops.aten.slice_scatter,
        torch.ops.aten.select_scatter,
        torch.ops.aten.diagonal_scatter,
    }
)
"""They return their first argument with some elements replaced."""


def replaced_arguments(nodes: list[fx.Node], written: list[fx.Node]) -> dict[fx.Node, str]:
    """The operations in `_OVERWRITES` that may overwrite their argument, -> the argument's name.

    Their result becomes the argument's new content (by a final `copy_`), and nothing reads the old
    content afterwards.
    """
    found: dict[fx.Node, str] = {}
    place = {node: i for i, node in enumerate(nodes)}
    for copy_ in written:
        target, source = copy_.args[:2]
        if (
            target.op != "placeholder"
            or getattr(source.target, "overloadpacket", None) not in _OVERWRITES
            or source.args[0] is not target
        ):
            continue
        here = place[source]
        views = [target]
        for view in views:
            for user in view.users:
                if user is copy_ or (user is source and view is target):
                    continue
                if place[user] >= here:
                    break
                if user.target is operator.getitem or _may_show(user, view):
                    views.append(user)
            else:
                continue
            break
        else:
            found[source] = target.name
    return found


def _may_show(user: fx.Node, source: fx.Node) -> bool:
    """Whether the value of `user` may be a view of the source's memory."""
    if user.op != "call_function" or isinstance(user.target, torch._ops.HigherOrderOperator):
        return True
    return bool(operation(user.target).shares)
