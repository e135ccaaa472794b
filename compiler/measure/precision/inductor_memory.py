"""The buffers of a graph that Inductor compiled, and the nodes whose values lie in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from compiler.graphs.realised import Place, RealisedGraph
from compiler.measure.probes.graph_probe import GraphStep

_NAME = re.compile(r"[A-Za-z_]\w*")


class InductorMemory:
    """`Memory` of one graph. A buffer that is written in place holds the value of who wrote it
    last, among the steps so far."""

    def __init__(
        self,
        graph: RealisedGraph,
        steps: Sequence[GraphStep],
        operations: Mapping[int, Sequence[str]],
    ) -> None:
        """`operations`: what each step carries out, by its index: `op3`, …"""
        self.graph = graph
        self._steps = steps
        self._operations = operations
        self._holds: dict[str, str] = {}
        """Name of a tensor -> the buffer whose value it holds now, where that is another one."""
        self._at: dict[str, list[tuple[fx.Node, Place]]] = {}
        for node, place in graph.places.items():
            self._at.setdefault(place.buffer, []).append((node, place))

    def nodes(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, held in tensors.items():
            for node, place in self._at.get(self._holds.get(name, name), ()):
                value = held
                for position in place.item:
                    value = value[position]
                if isinstance(value, torch.Tensor) and _fits(value, node.meta.get("val")):
                    found[node.name] = value
        return found

    def complete(self, step: int) -> Collection[str]:
        """A kernel that is called several times writes what each call is given."""
        given = set(_NAME.findall(self._steps[step].text))
        found: dict[str, None] = {}
        for operation in self._operations.get(step, ()):
            for buffer in self.graph.operations.get(operation, ()):
                name = buffer
                while name in self.graph.memory:
                    name = self.graph.memory[name]
                if name in given:
                    self._holds[name] = buffer
                    found[name] = None
        return found


def _fits(value: torch.Tensor, expected: Any) -> bool:
    """Whether it may be the value of a node: torch pads and permutes some buffers."""
    if not isinstance(expected, torch.Tensor) or value.dtype is not expected.dtype:
        return False
    return len(value.shape) == len(expected.shape) and all(
        not isinstance(size, int) or size == real
        for size, real in zip(expected.shape, value.shape, strict=True)
    )
