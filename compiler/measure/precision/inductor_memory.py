"""The buffers of a graph that Inductor compiled, and the nodes whose values they hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from tcw.compiler.graphs.realised import RealisedGraph

_REUSED = re.compile(r"^\s*(\w+) = (?:reinterpret_tensor\()?(\w+)\b[^;\n]*; del \2\b", re.MULTILINE)
"""`buf10 = buf9; del buf9  # reuse`, before the step that writes buf10."""


class InductorMemory:
    """The `BufferContents` of one run of a graph. A buffer written in place holds the value of its
    last writer among the steps so far."""

    def __init__(
        self,
        graph: RealisedGraph,
        reads: Mapping[int, Sequence[str]],
        operations: Mapping[int, Sequence[str]],
        code: str = "",
    ) -> None:
        """By step index, `reads`: the variables that its call names; `operations`: those of its
        kernel, `op3`, … `code`: the wrapper's text."""
        self._former = dict(_REUSED.findall(code))
        """Name -> the previous name of its memory."""
        self.graph = graph
        self._reads = reads
        self._operations = {index: tuple(names) for index, names in operations.items()}
        self._times = Counter(self._operations.values())
        self._holds: dict[str, str] = {}
        """Name of a tensor -> the buffer whose value it holds now, if that is a different one."""
        self._at: dict[str, list[fx.Node]] = {}
        self._written: set[str] = set()
        """Buffers that hold a value."""
        for node in graph.module.graph.nodes:
            places = {graph.places[node]} if node in graph.places else set()
            if node.op == "placeholder":
                # it may have a second place, in the layout that its reader wants
                places |= {node.name, str(node.target)}
                self._written |= {node.name, str(node.target)}
            for place in places:
                self._at.setdefault(place, []).append(node)

    def nodes(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        return {
            node.name: value
            for name, value in tensors.items()
            if (held := self._held(name)) in self._written
            for node in self._at.get(held, ())
            if _fits(value, node.meta.get("val"))
        }

    def complete(self, step: int) -> Collection[str]:
        operations = self._operations.get(step, ())
        # in order: a memory location holds what its last writer stored
        buffers = [
            operation for name in operations for operation in self.graph.operations.get(name, ())
        ]
        if self._times[operations] > 1:  # several steps call this kernel, each with its own buffers
            buffers = [buffer for buffer in buffers if self._name(buffer) in self._reads[step]]
        buffers = [buffer for buffer in buffers if buffer not in self.graph.unstored]
        self._written.update(buffers)
        for whole, pieces in self.graph.pieces.items():
            if whole not in self._written and self._written.issuperset(pieces):
                self._written.add(whole)
                buffers.append(whole)
        self._holds.update((self._name(buffer), buffer) for buffer in buffers)
        names = {self._name(buffer) for buffer in buffers}
        return names | {name for name in self._former if self._held(name) in buffers}

    def _name(self, buffer: str) -> str:
        """The buffer's name in the code."""
        while buffer in self.graph.memory:
            buffer = self.graph.memory[buffer]
        return buffer

    def _held(self, name: str) -> str:
        """The buffer whose value a tensor of the code holds now."""
        while name in self._former and name not in self._holds:
            name = self._former[name]
        return self._holds.get(name, name)


def _fits(value: torch.Tensor, expected: Any) -> bool:
    """Whether a tensor may be the value of a node: torch pads and permutes some buffers."""
    if not isinstance(expected, torch.Tensor) or value.dtype is not expected.dtype:
        return False
    return len(value.shape) == len(expected.shape) and all(
        not isinstance(size, int) or size == real
        for size, real in zip(expected.shape, value.shape, strict=True)
    )
