"""Cost estimates: bytes, instructions, and sizes as numbers. Not for correctness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcw.compiler.fusion.rows import Mask, elements, kept_size
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Expression, Gather, Load, Op, walk
from tcw.compiler.loops.graph import Call, Graph, Node, Store, shape_of
from tcw.compiler.loops.layouts import normalize
from tcw.compiler.loops.nest import Memory
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.sizes import Size, evaluate, product, symbols_of


@dataclass(frozen=True, slots=True)
class Machine:
    """What fusion assumes of the machine that runs the nests."""

    near: int
    """Bytes that one nest may hold in its fastest memory: accumulators of riding reductions."""
    far: int
    """The limit if each accumulator sums up many rows, so that another nest would have to read
    much more."""
    apart: str
    """What a loop nest becomes by itself, and what two of them still share."""
    columns: bool
    """Whether a nest can go on after a reduction of columns as after one of rows: it is several
    kernels then, or several passes over memory."""
    divides: bool
    """Whether dividing an index for each element costs less than a memory round trip."""
    runs: bool
    """Whether lanes hold elements side by side, so that rows of fewer elements leave some idle."""


CPU = Machine(
    near=32 << 10,
    far=128 << 10,
    apart="a C++ function of its own; intermediate results go through memory, and one segment may "
    "call both",
    columns=False,
    divides=False,
    runs=True,
)
"""One core: its L1 cache, and a share of L2. The gradients of 81x161x81 times 161x81, with 52 KB of
accumulators, take 1.1 ms in one nest and 1.6 in two (EPYC); of 16 rows of 65,536, 1.8 and 1.6."""
GPU = Machine(
    near=64 << 10,
    far=64 << 10,
    apart="kernels of its own; intermediate results go through the GPU's memory, and one segment "
    "may launch both",
    columns=True,
    divides=True,
    runs=False,
)
"""A program's share of a processor's registers. A reduction over all processors ends its kernel in
any case: what follows may be in the same nest at no cost."""
L2 = 1 << 20
LANES = 16
"""Elements that a target is assumed to compute at once."""
CHEAP = 8
"""Instruction count up to which recomputing is cheaper than a memory round trip."""
UNKNOWN = 64
"""Assumed value of a symbol without a hint."""


class Weights:
    """Sizes as numbers, using the hints of one graph."""

    def __init__(self, graph: Graph, machine: Machine = CPU) -> None:
        self.machine = machine
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
        """The number of elements in a node's value, or that a store writes."""
        return 0 if isinstance(node, Call) else self.number(elements(shape_of(node)))

    def bytes(self, node: Node) -> int:
        """The size of a node's value in bytes."""
        return self.elements(node) * BYTES.get(getattr(node, "dtype", ""), 4)

    def memory(self, memory: Memory) -> int:
        """The size of a memory in bytes."""
        return self.number(memory.size) * BYTES.get(memory.dtype, 4)

    def touched(self, load: Load | Gather, domain: Size) -> int:
        """Bytes of a value that a domain of this size reads, counting each element once."""
        count = self.number(domain)
        if isinstance(load, Load) and load.view:
            inner = normalize(load.view[-1])
            digits = zip(inner.shape, inner.strides, strict=True)
            count = self.number(product(size for size, stride in digits if stride != 0))
        return count * BYTES.get(load.dtype, 4)

    def accumulators(self, masks: tuple[Mask, ...]) -> int:
        """Bytes that riding reductions hold throughout a loop."""
        return sum(4 * self.number(kept_size(mask)) for mask in masks)


def work(expression: Expression) -> int:
    """A rough instruction count per element."""
    return sum(OPERATORS[part.name].weight for part in walk(expression) if isinstance(part, Op))


def instructions(node: Node) -> int:
    """The instruction count per element of a node's domain."""
    expression = getattr(node, "expression", None)
    return 0 if expression is None else work(expression) + (1 if isinstance(node, Store) else 0)
