"""Which memory a node shows according to ATen, which of our values two nodes share, and which
argument an operation may overwrite, because its result only replaces the content."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from tcw.compiler.lowering.calls import Operation, operation
from tcw.compiler.lowering.tensors import Tensor

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


class Ownership:
    """Memory ownership in one graph, up to the node being lowered."""

    def __init__(self) -> None:
        self._roots: dict[fx.Node, fx.Node] = {}
        self._owners: dict[str, fx.Node] = {}
        self._shared: dict[str, list[fx.Node]] = {}
        self.replacing: set[fx.Node] = set()
        """Nodes whose result may overwrite their first argument."""
        self._overwritten: set[fx.Node] = set()
        """Nodes in memory of the graph's own that a later node has overwritten."""

    def root(self, node: fx.Node) -> fx.Node:
        """The node whose memory a view shows; for any other node, the node itself."""
        return self._roots.get(node, node)

    def owner(self, value: str, default: fx.Node) -> fx.Node:
        """The node that owns the value's memory."""
        return self.root(self._owners.get(value, default))

    def has_owner(self, value: str) -> bool:
        return value in self._owners

    def own(self, value: str, node: fx.Node) -> None:
        """Record that the value was created for this node."""
        self._owners[value] = node

    def replaced_value(self, node: fx.Node, values: Mapping[fx.Node, Any]) -> str:
        """The value of the first argument if the node may overwrite it, or ""."""
        if node not in self.replacing:
            return ""
        first = node.args[0]
        shown = values.get(first)
        if not isinstance(shown, Tensor) or self._owners.get(shown.value) is not first:
            return ""
        return shown.value

    def note_overwritten(
        self, replaced: str, made: Sequence[Tensor | None], values: Mapping[fx.Node, Any]
    ) -> None:
        """Note what was in the replaced value, if its memory now holds one of the results. An
        argument is left: its content as passed is known."""
        if replaced and any(tensor is not None and tensor.value == replaced for tensor in made):
            self._overwritten.update(
                node
                for node, value in values.items()
                if isinstance(value, Tensor)
                and value.value == replaced
                and node.op != "placeholder"
            )

    def kept(self, values: Mapping[fx.Node, Any]) -> dict[fx.Node, Any]:
        """The values that the end of the graph still finds in memory."""
        return {node: value for node, value in values.items() if node not in self._overwritten}

    def note(self, node: fx.Node, known: Operation, results: tuple[Tensor | None, ...]) -> None:
        """Record the results of a lowered node."""
        for place in known.shares or known.writes:
            source = _argument(node, place)
            if isinstance(source, fx.Node):
                self._roots[node] = self.root(source)
                break
        for result in results:
            if result is not None:
                if node in self.replacing and self._is_made_for(node.args[0], result.value):
                    self.own(result.value, node)
                self.show(node, result)

    def _is_made_for(self, node: Any, value: str) -> bool:
        """Whether the value was created for this node, which is not an argument of the graph."""
        return node.op != "placeholder" and self._owners.get(value) is node

    def note_item(self, node: fx.Node, source: fx.Node, item: Tensor) -> None:
        """Record that the node is one of the source's results."""
        self._roots[node] = root = self._roots.get(source, node)
        if self._owners.get(item.value) is source:
            self._owners[item.value] = root
        self.show(node, item)

    def show(self, node: fx.Node, result: Tensor) -> None:
        """Record that the node's tensor is a view of the result's value."""
        root = self.root(node)
        if self._owners.setdefault(result.value, root) is root:
            return
        if self.owner(result.value, root) is not root:
            self._shared.setdefault(result.value, []).append(node)

    def take_shared(self, value: str) -> list[fx.Node]:
        """Remove and return the nodes that share the value but own their memory in ATen."""
        return self._shared.pop(value, [])

    def share_again(self, value: str, node: fx.Node) -> None:
        self._shared.setdefault(value, []).append(node)


def _argument(node: fx.Node, place: int | str) -> Any:
    if isinstance(place, str):
        return node.kwargs.get(place)
    return node.args[place] if place < len(node.args) else None


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
