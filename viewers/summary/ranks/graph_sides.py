"""How two ranks' captured graphs differ first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tcw.compiler.trace.records import Graph, Location, Node
from tcw.viewers.labels import short_target
from tcw.viewers.summary.differences.lines import gaps, matches
from tcw.viewers.summary.ranks.events import constants
from tcw.viewers.words import tensor_text

_INPUT = re.compile(r"^[LG]_(?P<name>\w+?)_?$")
_FIELDS = re.compile(r"_(?:modules|parameters|buffers)_")


@dataclass(frozen=True)
class GraphSide:
    """What one graph has where they differ."""

    words: str
    location: Location | None


def graph_sides(own: Graph, other: Graph) -> GraphSide:
    """What `own` has at the first difference from `other`: an operation, or a size."""
    mine, theirs = _computing(own), _computing(other)
    keys = [_what(one) for one in mine], [_what(one) for one in theirs]
    if keys[0] != keys[1]:
        return _operation(mine, theirs, *keys)
    inputs = {one.target: one for one in other.nodes if one.op == "placeholder"}
    for node in own.nodes:
        against = inputs.get(node.target) if node.op == "placeholder" else None
        if against is not None and _sizes(node) != _sizes(against):
            return GraphSide(f"gets {input_name(node)} as {_tensor(node)}", _first_use(own, node))
    for node, against in zip(mine, theirs, strict=True):
        if _sizes(node) != _sizes(against):
            return GraphSide(
                f"computes {short_target(node.target)} as {_tensor(node)}", node.location
            )
    extra = [one for one in own.nodes if one.op == "placeholder" and one.target not in inputs]
    if extra:
        return GraphSide(f"has {input_name(extra[0])} as an input", _first_use(own, extra[0]))
    return GraphSide(f"has {len(mine)} operations", None)


def constant_sides(own: Graph, other: Graph) -> GraphSide:
    """A constant of `own` that is another one in `other`, whose operations are the same."""
    for node, against in zip(own.nodes, other.nodes, strict=False):
        if constants(node) != constants(against):
            return GraphSide(f"calls {short_target(node.target)}({node.args})", node.location)
    return GraphSide("has other constants", None)


def modules_only_of(own: Graph, other: Graph) -> list[str]:
    """Modules that only `own` runs, in order, without those inside them."""
    theirs = {node.module for node in other.nodes}
    only = dict.fromkeys(
        node.module for node in own.nodes if node.module and node.module not in theirs
    )
    return [name for name in only if not any(name.startswith(f"{one}.") for one in only)]


def _operation(
    mine: list[Node], theirs: list[Node], own: list[object], other: list[object]
) -> GraphSide:
    first, second = gaps(matches(own, other), len(own), len(other))[0]
    node = mine[first.start] if first else theirs[second.start]
    words = f"{'calls' if first else 'does not call'} {short_target(node.target)}"
    where = f" in {node.module}" if node.module else ""
    return GraphSide(words + where, node.location if first else None)


def _computing(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op.startswith("call_") or node.op == "get_attr"]


def _what(node: Node) -> object:
    return node.op, node.target, node.module


def _sizes(node: Node) -> object:
    values = [value for value in (node.value, *node.values) if value is not None]
    return tuple((value.shape, value.dtype) for value in values)


def _tensor(node: Node) -> str:
    value = node.value or next(
        (tensor_meta for tensor_meta in node.values if tensor_meta is not None), None
    )
    return tensor_text(value) if value is not None else "no tensor"


def _first_use(graph: Graph, node: Node) -> Location | None:
    using = (one for one in graph.nodes if node.name in one.inputs and one.location is not None)
    first = next(using, None)
    return first.location if first is not None else node.location


def input_name(node: Node) -> str:
    """`x` of `L_x_`, `self.layer.weight` of `L_self_modules_layer_parameters_weight_`."""
    match = _INPUT.match(node.target)
    return _FIELDS.sub(".", match["name"]) if match is not None else node.name
