"""Where nodes come from: torch's provenance metadata, read back as node names of the parent graph.

- `meta["from_node"]`: the node that an interpreter was running when it created this node
  (torch/fx/traceback.py).
- `meta["seq_nr"]`: the sequence number of an autograd node, shared by its forward and backward
  nodes (torch/_functorch/_aot_autograd/fx_utils.py).
- `meta["desc"]`: the argument that an AOTAutograd placeholder stands for
  (torch/_functorch/_aot_autograd/descriptors.py).
- `MadeNode`: the nodes that an Inductor pattern replaced. Our own hook records them at the time,
  because torch leaves most replacements without a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from torch import fx

from tcw.compiler.graphs.nodes import COMPUTING, Origins, node_stack, target_name, user_line
from tcw.compiler.trace.records import Graph, Location, Node


@dataclass(frozen=True)
class MadeNode:
    """A node that a pass created to replace others."""

    by: str
    """The name of the pass."""
    instead_of: tuple[fx.Node, ...]
    """The replaced nodes. They are erased from the graph but keep their metadata."""


_made: dict[str, dict[str, MadeNode]] = {}


def note_made(graph: str, names: Iterable[str], made: MadeNode) -> None:
    """Record that pass `made.by` added these nodes to the graph with this id."""
    _made.setdefault(graph, {}).update(dict.fromkeys(names, made))


def made_in(graph: str) -> dict[str, MadeNode]:
    """The nodes that passes created in the graph with this id, by name."""
    return _made.get(graph, {})


def forget_made(graph: str) -> None:
    """Drop a finished graph: a later compile may reuse its id (`torch._dynamo.reset`)."""
    for known in [id for id in _made if id == graph or id.startswith(f"{graph}/")]:
        del _made[known]


_lines: dict[str, dict[str, Location]] = {}


def keep_lines(graph: Graph) -> None:
    """Keep the lines of an AOTAutograd graph until the next graph with the same id is recorded: its
    backward may be lowered much later."""
    _lines[graph.id] = lines_of(graph)


def kept_lines(graph: str) -> dict[str, Location]:
    """The kept lines of the AOTAutograd graph with this id, by node name."""
    return _lines.get(graph, {})


def forget_lines() -> None:
    """Drop all kept lines at the end of a recording."""
    _lines.clear()


def named_roots(node: fx.Node, names: frozenset[str]) -> tuple[str, ...]:
    """The distinct ends of a node's `from_node` chains that are in `names`."""
    found: dict[str, None] = {}

    def walk(sources: Iterable[object], depth: int) -> None:
        for source in sources:
            deeper = getattr(source, "from_node", None) or ()
            if deeper and depth < 32:
                walk(deeper, depth + 1)
            elif (name := getattr(source, "name", "")) in names:
                found[name] = None

    walk(node.meta.get("from_node") or (), 0)
    return tuple(found)


def argument_index(node: fx.Node) -> int | None:
    """The index of the captured graph's flat argument that a placeholder stands for."""
    described = node.meta.get("desc")
    for _ in range(8):
        if described is None or type(described).__name__.startswith("Tangent"):
            return None
        index = getattr(described, "idx", None)
        if type(described).__name__ == "PlainAOTInput" and isinstance(index, int):
            return index
        described = getattr(described, "base", None) or getattr(described, "base_of", None)
    return None


def captured_origins(
    graph: fx.Graph, graph_id: str, names: frozenset[str], placeholders: Sequence[str]
) -> Origins:
    """Origins of AOTAutograd's nodes in the captured graph, whose node names are `names`."""
    made = made_in(graph_id)

    def direct(node: fx.Node) -> tuple[str, ...]:
        if node.op != "placeholder":
            return named_roots(node, names)
        index = argument_index(node)
        return (placeholders[index],) if index is not None and index < len(placeholders) else ()

    by_sequence: dict[int, dict[str, None]] = {}
    # a forward node that a pass replaced is gone, but its backward nodes still carry its number
    replaced = (old for item in made.values() for old in item.instead_of)
    for node in (*graph.nodes, *replaced):
        number = node.meta.get("seq_nr")
        if number is not None and node.op in COMPUTING:
            by_sequence.setdefault(number, {}).update(dict.fromkeys(direct(node)))

    def origins(node: fx.Node, depth: int = 0) -> tuple[str, ...]:
        found = direct(node)
        if not found and node.name in made and depth < 32:
            older = (origins(old, depth + 1) for old in made[node.name].instead_of)
            found = tuple(dict.fromkeys(name for group in older for name in group))
        return found or tuple(by_sequence.get(node.meta.get("seq_nr", -1), ()))

    return origins


def copied_origins(parent: Iterable[str]) -> Origins:
    """Origins for graphs whose nodes torch copies by name, as the partitioners do from the joint
    graph."""
    names = frozenset(parent)

    def origins(node: fx.Node) -> tuple[str, ...]:
        return (node.name,) if node.name in names and node.op != "output" else ()

    return origins


def with_inferred_lines(
    graph: Graph, lines: dict[str, Location], graph_made: dict[str, MadeNode]
) -> Graph:
    """The graph with missing locations inferred from the nodes that each node was made from.

    `lines` maps the parent's node names to locations. Among several candidates, a node with the
    same target wins, else the last one: a replacement computes what the last replaced node did.
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        made = graph_made.get(node.name)
        changes: dict[str, object] = {}
        if made is not None:
            changes["made_by"] = made.by
        if node.location is None and node.op != "output":
            old = None if made is None else replaced_node(made, node.target, graph_made)
            line = user_line(old) or line_of_origins(node, lines)
            if line is not None:
                changes.update(location=line, inferred=True)
        nodes.append(msgspec.structs.replace(node, **changes) if changes else node)
    return msgspec.structs.replace(graph, nodes=tuple(nodes))


def line_of_origins(node: Node, lines: Mapping[str, Location]) -> Location | None:
    """The line of the last of a node's origins that has one in `lines`."""
    return next((lines[name] for name in reversed(node.origins) if name in lines), None)


def replaced_node(made: MadeNode, target: str, made_by_name: dict[str, MadeNode]) -> fx.Node | None:
    """The replaced node that lends its line to a node created in its place: the one with the same
    target, else the last one with a line; None if none has a line.

    A replaced node that was itself created by a pass stands for the nodes that it replaced.
    """
    candidates: list[fx.Node] = []

    def collect(found: MadeNode, depth: int) -> None:
        for old in found.instead_of:
            if node_stack(old):
                candidates.append(old)
            elif old.name in made_by_name and depth < 32:
                collect(made_by_name[old.name], depth + 1)

    collect(made, 0)
    for old in candidates:
        if target_name(old.target) == target:
            return old
    return candidates[-1] if candidates else None


def replaced_names(made: MadeNode, made_by_name: dict[str, MadeNode]) -> tuple[str, ...]:
    """Names of the nodes that a pass replaced. Nodes that passes created are resolved to theirs."""
    found: dict[str, None] = {}

    def collect(item: MadeNode, depth: int) -> None:
        for old in item.instead_of:
            inner = made_by_name.get(old.name)
            if inner is not None and inner.instead_of and depth < 32:
                collect(inner, depth + 1)
            else:
                found[old.name] = None

    collect(made, 0)
    return tuple(found)


def lines_of(graph: Graph) -> dict[str, Location]:
    """The line of each node that has one, by name."""
    return {node.name: node.location for node in graph.nodes if node.location is not None}


def distinct_lines(
    described: Mapping[str, Node], names: Iterable[str]
) -> tuple[tuple[Location, ...], bool]:
    """The distinct user lines of these nodes, in file order, and whether all are inferred."""
    exact: dict[tuple[str, int], Location] = {}
    inferred: dict[tuple[str, int], Location] = {}
    for name in names:
        node = described.get(name)
        if node is not None and node.location is not None:
            into = inferred if node.inferred else exact
            into.setdefault((node.location.file, node.location.line), node.location)
    both = {**inferred, **exact}
    return tuple(both[key] for key in sorted(both)), bool(both) and not exact
