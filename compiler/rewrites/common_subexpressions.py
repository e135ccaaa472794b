"""Common subexpression elimination in a joint graph, before it is partitioned.

The rules are those of `fx_graph_cse` (torch/_functorch/compile_utils.py), which the partitioner
would call. That imports Inductor's lowerings: 0.4 CPU seconds for two small functions.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from tcw.compiler.rewrites.subject import Subject

_NOT_AGAIN = frozenset(
    {
        torch.Tag.nondeterministic_seeded,
        torch.Tag.data_dependent_output,
        torch.Tag.dynamic_output_shape,
    }
)
"""Operations whose second call may return other values, or data-dependent shapes."""

_EMPTY = frozenset({"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty"})
"""Operations that only return new memory."""


_ALIAS = torch.ops.aten.alias.default
"""Returns its argument. Left in, the partitioner may save both for the backward, redundantly."""


def merge_common_subexpressions(subject: Subject) -> int:
    """Merge in place and return the number of nodes that are gone.

    The first of equal operations stays, and aliases give way to their source. Nodes that share
    memory with an output stay, since two outputs are two tensors. Nothing is merged across a
    mutation.
    """
    graph = subject.module.graph
    kept = _alias_outputs(graph)
    count = len(graph.nodes)
    first: dict[Hashable, fx.Node] = {}
    mutations = 0
    for node in list(graph.nodes):
        schema = getattr(node.target, "_schema", None)
        mutations += bool(getattr(schema, "is_mutable", False))
        if node in kept or not _mergeable(node):
            continue
        if node.target is _ALIAS:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
            continue
        try:
            key = (mutations, node.target, _key(node.args), _key(node.kwargs))
            earlier = first.setdefault(key, node)
        except TypeError:  # an unhashable argument
            continue
        if earlier is not node:
            node.replace_all_uses_with(earlier)
            graph.erase_node(node)
    return count - len(graph.nodes)


def _mergeable(node: fx.Node) -> bool:
    target = node.target
    if node.op != "call_function" or isinstance(target, torch._ops.HigherOrderOperator):
        return False
    name = getattr(getattr(target, "_schema", None), "name", "")
    return name not in _EMPTY and _NOT_AGAIN.isdisjoint(getattr(target, "tags", ()))


def _key(argument: Any) -> Hashable:
    """Equal for arguments that mean the same: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(argument, fx.Node):
        return (fx.Node, argument)
    if isinstance(argument, (tuple, list)):
        return (list, *map(_key, argument))
    if isinstance(argument, dict):
        return (dict, *((name, _key(value)) for name, value in argument.items()))
    if isinstance(argument, slice):
        return (slice, _key(argument.start), _key(argument.stop), _key(argument.step))
    if isinstance(argument, (float, complex)):
        return type(argument), repr(argument)
    if isinstance(argument, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return (torch.SymInt, argument.node)
    return type(argument), argument


def _alias_outputs(graph: fx.Graph) -> frozenset[fx.Node]:
    storages = {_storage(node) for node in graph.output_node().all_input_nodes} - {None}
    return frozenset(node for node in graph.nodes if _storage(node) in storages)


def _storage(node: fx.Node) -> StorageWeakRef | None:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    try:
        return StorageWeakRef(value.untyped_storage())
    except NotImplementedError:
        return None
