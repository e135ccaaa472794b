"""What things cost: bytes, instructions, and sizes as numbers. Only to weigh, never to rely on."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.fusion.counts import elements
from compiler.fusion.rows import Mask, kept_size
from compiler.loops.dtypes import BYTES
from compiler.loops.expressions import Expression, Gather, Load, Op, walk
from compiler.loops.graph import Call, Graph, Map, Node, Reduce, Scan, Store
from compiler.loops.layouts import normalize
from compiler.loops.operators import OPERATORS
from compiler.loops.program import Memory
from compiler.loops.sizes import Size, evaluate, product, symbols_of

L1 = 32 << 10
"""Bytes of the innermost cache that one nest may count on."""
L2 = 1 << 20
LANES = 16
"""Elements side by side that a target is taken to compute at once."""
UNKNOWN = 64
"""What a symbol without a hint counts as."""


class Weights:
    """Sizes as numbers, by the hints of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._hints: Mapping[str, int] = graph.hints
        self._known: dict[Size, int] = {}

    def number(self, size: Size) -> int:
        if isinstance(size, int):
            return size
        found = self._known.get(size)
        if found is None:
            values = {name: self._hints.get(name, UNKNOWN) for name in symbols_of(size)}
            found = self._known[size] = evaluate(size, values)
        return found

    def elements(self, node: Node) -> int:
        """Elements of a node's value; of a store: that it writes."""
        if isinstance(node, Reduce):
            return self.number(elements(node.kept))
        if isinstance(node, (Map, Scan, Store)):
            return self.number(elements(node.domain))
        return 0 if isinstance(node, Call) else self.number(elements(node.shape))

    def bytes(self, node: Node) -> int:
        """Bytes of a node's value."""
        return self.elements(node) * BYTES.get(getattr(node, "dtype", ""), 4)

    def memory(self, memory: Memory) -> int:
        """Bytes of a memory."""
        return self.number(memory.size) * BYTES.get(memory.dtype, 4)

    def touched(self, load: Load | Gather, domain: Size) -> int:
        """Bytes of a value that a domain of this size reads, each once."""
        count = self.number(domain)
        if isinstance(load, Load) and load.view:
            inner = normalize(load.view[-1])
            digits = zip(inner.shape, inner.strides, strict=True)
            count = self.number(product(size for size, stride in digits if stride != 0))
        return count * BYTES.get(load.dtype, 4)

    def accumulators(self, masks: tuple[Mask, ...]) -> int:
        """Bytes that riding reductions hold through a loop."""
        return sum(4 * self.number(kept_size(mask)) for mask in masks)


def work(expression: Expression) -> int:
    """Instructions for each element, roughly."""
    return sum(OPERATORS[part.name].weight for part in walk(expression) if isinstance(part, Op))


def instructions(node: Node) -> int:
    """Instructions for each element of a node's domain."""
    expression = getattr(node, "expression", None)
    return 0 if expression is None else work(expression) + (1 if isinstance(node, Store) else 0)
