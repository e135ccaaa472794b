"""Dead code elimination: nodes that no output, call or mutation observes."""

from __future__ import annotations

from compiler.fusion.dependencies import read_values, storage
from compiler.loops.graph import Buffer, Call, Graph, Input, Node, Operand, Store


def live(graph: Graph) -> list[Node]:
    """The graph's live nodes. Calls with effects always stay."""
    memory = storage(graph)
    wanted = {memory[out.value] for out in graph.outputs if isinstance(out, Operand)}
    wanted |= {memory[node.name] for node in graph.nodes if isinstance(node, Input)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if isinstance(node, (Input, Buffer)):
            if isinstance(node, Input) or memory[node.name] in wanted:
                kept.append(node)
            continue
        needed = isinstance(node, Call) or (
            memory[node.buffer if isinstance(node, Store) else node.name] in wanted
        )
        if needed:
            wanted.update(memory[name] for name in read_values(node))
            kept.append(node)
    kept.reverse()
    return kept
