"""Inductor's half of the synthetic trace: graphs, loops and memory; fusion and kernels follow."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from tcw.compiler.trace.records import (
    Buffer,
    Graph,
    Location,
    Lowered,
    MemoryPlan,
    Node,
    SchedulerNode,
    Wrapper,
)
from tests.block_fusion import LABELS, Fusion
from tests.block_kernels import KERNELS, Kernels
from tests.inductor_loops import nest_in

BUFFERS = {
    "0/0/forward": (
        ("buf0", 2048, 0, 0, "temporary", "", "mean"),
        ("buf1", 2048, 0, 8, "saved", "buf0", "mean"),
        ("buf3", 2048, 0, 8, "saved", "", "rsqrt"),
        ("buf4", 524288, 0, 8, "saved", "", "normalised"),
        ("buf5", 1572864, 1, 2, "temporary", "", "qkv"),
        ("buf6", 524288, 2, 8, "saved", "", "q"),
        ("buf7", 524288, 2, 8, "saved", "", "k"),
        ("buf15", 524288, 2, 8, "saved", "", "v"),
        ("buf8", 2097152, 3, 4, "temporary", "", "scores"),
        ("buf9", 16384, 4, 4, "temporary", "", "amax"),
        ("buf10", 16384, 4, 4, "temporary", "", "amax"),
        ("buf11", 4096, 4, 4, "temporary", "", "any"),
        ("buf13", 16384, 4, 4, "temporary", "", "sum"),
        ("buf14", 2097152, 4, 8, "saved", "", "weights"),
        ("buf16", 524288, 5, 6, "temporary", "", "weights @ v"),
        ("buf17", 524288, 6, 8, "saved", "", "merged heads"),
        ("buf18", 524288, 7, 8, "temporary", "buf16", "proj"),
        ("buf19", 524288, 8, 8, "output", "buf18", "x"),
    ),
}

LocationOf = Callable[[int], Location]


class Inductor:
    """Writes the records of one graph's way through Inductor."""

    def __init__(self, data: Any, location: LocationOf, tensor: Callable[[Any], Any]) -> None:
        self.data = data
        self.location = location
        self.tensor = tensor
        self.fusion = Fusion(data)
        self.kernels = Kernels(data)
        self.compiles = 0

    def record(self, out: Any, cid: str, call: int, like: str) -> None:
        """Everything from the forward graph to its kernels, as `like` had it."""
        forward = f"{cid}/forward"
        lowered = f"{forward}/lowered"
        nodes = self._from_captured(self._nodes(self.data["lowered"][like]), like)
        out.add(self._graph(forward, "forward", cid, nodes, cid, call))
        same = tuple(_from_itself(node) for node in nodes)
        out.add(self._graph(lowered, "lowered", cid, same, forward, call))
        for row in self.data["scheduler"][like]:
            self._scheduler_node(out, lowered, like, row, nodes)
        self.fusion.record(out, lowered, like)
        names = []
        for step, (name, label, operations) in enumerate(KERNELS[like]):
            names.append(f"k{self.kernels.count} {label}")
            by_name = {node.name: node for node in nodes}
            self.kernels.record(out, lowered, like, step, name, label, operations, by_name)
        self._memory(out, lowered, like, tuple(names))
        wrapper = out.text(self.data["wrapper"][like])
        out.add(Wrapper(graph=lowered, language="python", text=wrapper))
        if like == "0/0/forward" and call == 1:
            self.kernels.predicted(out, lowered, {n.name: n for n in nodes})
            backward = self._nodes(self.data["lowered"]["0/0/backward"])
            out.add(self._graph(f"{cid}/backward", "backward", cid, backward, cid, call))

    def _nodes(self, rows: list[Any]) -> tuple[Node, ...]:
        names = {row[0] for row in rows}
        nodes = []
        for name, op, target, args, value, where, made_from in rows:
            inputs = tuple(dict.fromkeys(n for n in re.findall(r"\w+", args) if n in names))
            made = not where and op.startswith("call")
            line = 18 if made else where and where[0]
            nodes.append(
                Node(
                    name=name,
                    op=op,
                    target=target,
                    args=args,
                    inputs=inputs,
                    value=self.tensor(value),
                    location=self.location(line) if line else None,
                    inferred=made,
                    origins=tuple(made_from) if where else ("matmul", "scores", "weights") * made,
                    made_by="pass_pattern_1" if made else "",
                )
            )
        return tuple(nodes)

    def _from_captured(self, nodes: tuple[Node, ...], like: str) -> tuple[Node, ...]:
        """Each input of the forward graph is that of the captured graph in the same place."""
        rows = self.data["captured"][like.removesuffix("/forward")]
        captured = [name for name, op, *_ in rows if op == "placeholder"]
        inputs = [node.name for node in nodes if node.op == "placeholder"]
        of = dict(zip(inputs, captured, strict=False)) if len(inputs) == len(captured) else {}
        return tuple(
            msgspec.structs.replace(node, origins=(of[node.name],)) if node.name in of else node
            for node in nodes
        )

    @staticmethod
    def _graph(
        name: str, kind: Any, cid: str, nodes: tuple[Node, ...], parent: str, call: int
    ) -> Graph:
        ops = sum(node.op.startswith("call") for node in nodes)
        return Graph(
            id=name, kind=kind, compile_id=cid, nodes=nodes, parent=parent, ops=ops, call=call
        )

    def _scheduler_node(
        self, out: Any, graph: str, like: str, row: list[Any], nodes: tuple[Node, ...]
    ) -> None:
        name, kind, origins, domain, reads, writes, loops = row
        order = [node.name for node in nodes if node.name in origins]
        size = 4 * math.prod(domain) if domain else None
        out.add(
            SchedulerNode(
                graph=graph,
                name=name,
                kind=kind,
                origins=tuple(order),
                label=LABELS.get(like, {}).get(name, order[-1]),
                domain=tuple(domain),
                reads=tuple(reads),
                writes=tuple(writes),
                read_bytes=size,
                write_bytes=4 * domain[0] if kind == "reduction" and domain else size,
                nest=nest_in("\n".join(loops)) if loops else (),
            )
        )
        target = next((node.target for node in nodes if node.name == order[-1]), "")
        ir = {"extern": "ExternKernelOut", "reduction": "Reduction"}.get(kind, "Pointwise")
        out.add(Lowered(graph=graph, node=order[-1], target=target, ir=ir, operations=(name,)))

    def _memory(self, out: Any, graph: str, like: str, steps: tuple[str, ...]) -> None:
        if like not in BUFFERS:
            return
        buffers = tuple(
            Buffer(
                name=name,
                bytes=size,
                first=first,
                last=last,
                kind=kind,  # type: ignore[arg-type]
                reuses=reuses,
                inplace=bool(reuses),
                label=label,
            )
            for name, size, first, last, kind, reuses, label in BUFFERS[like]
        )
        out.add(
            MemoryPlan(
                graph=graph,
                steps=steps,
                buffers=buffers,
                peak_bytes=6344704,
                without_reuse_bytes=9502720,
            )
        )


def _from_itself(node: Node) -> Node:
    fields = {name: getattr(node, name) for name in Node.__struct_fields__}
    return Node(**{**fields, "origins": (node.name,)})
