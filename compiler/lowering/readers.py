"""Who reads a node of a graph."""

from __future__ import annotations

import torch
from torch import fx

from tcw.compiler.lowering.calls import operation


def read_in_place(node: fx.Node) -> bool:
    """Whether all readers, of the node or of views of it, are operations on elements."""
    pending = list(node.users)
    while pending:
        user = pending.pop()
        if torch.Tag.pointwise in getattr(user.target, "tags", ()):
            continue
        if not _is_view(user):
            return False
        pending += user.users
    return True


def only_returned(node: fx.Node) -> bool:
    """Whether only the caller gets it, or views of it: no operation reads or writes it."""
    return all(
        user.op == "output" or (_is_view(user) and only_returned(user)) for user in node.users
    )


def _is_view(node: fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    known = operation(node.target)
    return bool(known.shares) and not known.writes
