"""Inputs of a graph by the names that the user's program has for them."""

from __future__ import annotations

import re

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.panes.view import View


def input_name(view: View, graph: Graph, node: Node) -> str:
    """What the user's program calls an input: `x`, `ln1.weight`; else the node's own name."""
    captured = _captured(view, graph, node)
    if captured is None:
        return node.name
    words = captured.target
    match = re.fullmatch(r"[LG]_(?:self_)?modules_(.+)_(?:parameters|buffers)_(.+?)_*", words)
    if match:
        path = match[1].replace("_modules_", ".").strip("_")
        return f"{path}.{match[2]}"
    match = re.fullmatch(r"[LG]_(.+?)_", words)
    return match[1] if match else captured.name


def _captured(view: View, graph: Graph, node: Node) -> Node | None:
    """The input of the captured graph that an input of a later graph stands for."""
    for _ in range(8):
        if graph.kind == "captured":
            return node
        parent = view.recording.graphs.get(graph.parent)
        origin = view.recording.nodes(graph.parent).get(node.origins[0]) if node.origins else None
        if parent is None or origin is None or origin.op not in ("placeholder", "get_attr"):
            return None
        graph, node = parent, origin
    return None


def is_weight(view: View, graph: Graph, node: Node) -> bool:
    if node.op == "get_attr":
        return True
    if node.op != "placeholder":
        return False
    captured = _captured(view, graph, node)
    words = captured.target if captured is not None else node.target
    return "_parameters_" in words or "_buffers_" in words
