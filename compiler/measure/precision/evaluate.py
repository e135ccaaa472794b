"""Nodes of a lowered graph computed from known values, in any arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import fx

from tcw.compiler.measure.precision import operations
from tcw.compiler.measure.precision.arithmetic import Arithmetic, Noisy, NotComparable, Own
from tcw.compiler.protocol.error_words import error_line


class Evaluator:
    """Evaluates one lowered graph. Nodes may write arguments in place: later readers of such an
    argument get what was written."""

    def __init__(self, module: fx.GraphModule) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.place = {node: number for number, node in enumerate(self.nodes)}
        self._writers = _writers(self.nodes)

    def needed(
        self, targets: Iterable[fx.Node], known: Collection[fx.Node]
    ) -> tuple[list[fx.Node], list[fx.Node]]:
        """(nodes to compute, in order; known nodes that they read). The targets are computed even
        if they are known.

        Raises `NotComparable` if a node draws random numbers or cannot be computed.
        """
        computed: set[fx.Node] = set()
        read: set[fx.Node] = set()
        waiting = list(targets)
        while waiting:
            node = waiting.pop()
            if node in computed:
                continue
            self._possible(node)
            computed.add(node)
            for source in node.all_input_nodes:
                source = self.read_by(node, source)
                if source in known:
                    read.add(source)
                elif source.op == "get_attr":
                    computed.add(source)
                else:
                    waiting.append(source)
        return sorted(computed, key=self.place.__getitem__), sorted(
            read, key=self.place.__getitem__
        )

    def read_by(self, reader: fx.Node, source: fx.Node) -> fx.Node:
        """The node whose value `reader` finds in `source`: `source` itself, or its last writer
        before `reader`."""
        writers = self._writers.get(source)
        if not writers:
            return source
        last = None
        for writer in writers:
            if self.place[writer] < self.place[reader]:
                last = writer
        if last is None:
            return source
        if not _answers_what_it_writes(last, source):
            raise NotComparable(f"{last.target} writes {source.name} in place")
        return last

    def _possible(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            raise NotComparable(f"the argument {node.name} was not seen")
        if node.op not in ("call_function", "get_attr"):
            raise NotComparable(f"{node.name} is a {node.op}")
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            name = node.target.name()
            raise NotComparable(f"{name} is a higher-order operation: it calls graphs of its own")
        if operations.draws(node):
            raise NotComparable("it draws random numbers")
        if operations.is_uninitialised(node.target):
            raise NotComparable(f"{node.name} is uninitialised memory")

    def values(
        self,
        order: Iterable[fx.Node],
        known: Mapping[fx.Node, Any],
        arithmetic: Arithmetic,
        unread: Collection[fx.Node] = (),
    ) -> dict[fx.Node, Any]:
        """The value of each node in `order`. `unread`: known nodes that the kernel did not read, so
        that it computed them itself.

        Raises `NotComparable` if ATen refuses.
        """
        found: dict[fx.Node, Any] = {}
        taken: dict[fx.Node, Any] = {}

        def value(reader: fx.Node, source: fx.Node) -> Any:
            source = self.read_by(reader, source)
            if source in found:
                return found[source]
            if source not in taken:
                if isinstance(arithmetic, Noisy) and source in unread:
                    taken[source] = arithmetic.recomputed(source, known[source])
                else:
                    taken[source] = arithmetic.taken(source, known[source])
            return taken[source]

        for node in order:
            if node.op == "get_attr":
                found[node] = arithmetic.taken(node, _attribute(self.module, str(node.target)))
                continue
            args, kwargs = fx.map_arg(
                (node.args, node.kwargs), lambda source, reader=node: value(reader, source)
            )
            try:
                found[node] = arithmetic.run(node, args, dict(kwargs))
            except NotComparable:
                raise
            except Exception as error:
                where = "" if isinstance(arithmetic, Own) else " in float64"
                why = error_line(error, 200)
                raise NotComparable(f"{node.target}{where}: {why}") from error
        return found


def _attribute(module: fx.GraphModule, path: str) -> Any:
    found = operator.attrgetter(path)(module)
    if not isinstance(found, torch.Tensor):
        raise NotComparable(f"{path} is a {type(found).__name__}")
    return found.detach()


def _writers(nodes: list[fx.Node]) -> dict[fx.Node, list[fx.Node]]:
    """For each node, the nodes that write its memory in place, also through views, in order."""
    found: dict[fx.Node, list[fx.Node]] = {}
    for node in nodes:
        if node.op != "call_function":
            continue
        for written in _written(node):
            for base in _bases(written):
                found.setdefault(base, []).append(node)
    return found


def _written(node: fx.Node) -> list[fx.Node]:
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator) and "mutation" in target.name():
        return list(node.all_input_nodes)
    found: list[fx.Node] = []
    for place, name in operations.written(target):
        value = node.args[place] if place < len(node.args) else node.kwargs.get(name)
        fx.map_arg(value, found.append)
    return found


def _bases(node: fx.Node) -> list[fx.Node]:
    """The node, and the nodes that it is a view of."""
    found = [node]
    while operations.is_view(node.target) and node.all_input_nodes:
        node = node.all_input_nodes[0]
        found.append(node)
    return found


def _answers_what_it_writes(writer: fx.Node, source: fx.Node) -> bool:
    """Whether the writer's own value is the new content of `source`: `x.copy_(y)`, `x.add_(y)`."""
    schema = getattr(writer.target, "_schema", None)
    return (
        schema is not None
        and bool(writer.args)
        and writer.args[0] is source
        and len(schema.returns) == 1
        and schema.returns[0].alias_info is not None
        and schema.returns[0].alias_info.is_write
    )
