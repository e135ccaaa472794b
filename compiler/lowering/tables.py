"""Indices that are known while a graph is lowered, such as those of a resampling.

torch resamples by index tensors that it computes from the positions alone, in floating point. Such
a tensor is evaluated here, and expressed again as the integer formula that it equals, if there is
one: positions some elements apart, or each repeated, within limits. Code generation
reads these as whole vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch._subclasses.fake_tensor import unset_fake_temporarily

from tcw.compiler.loops.expressions import Const, Expression, Iota, Load, Op, walk
from tcw.compiler.loops.graph import Graph, Map, Operand
from tcw.compiler.loops.interpreter import run_graph
from tcw.compiler.loops.layouts import Layout, Shape
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.tensors import Tensor

MOST = 1 << 14
"""Elements of an index that is evaluated."""
REPEATS = (2, 4)
STEPS = (1, 2, 3, 4)


def known(builder: Builder, index: Tensor) -> list[int] | None:
    """The elements of an index tensor in row-major order if they depend on no argument."""
    size = index.size
    if not isinstance(size, int) or not 2 <= size <= MOST or index.view:
        return None
    maps = {node.name: node for node in builder.graph.nodes if isinstance(node, Map)}
    needed: dict[str, Map] = {}
    pending = [index.value]
    while pending:
        node = maps.get(pending.pop())
        if node is None or any(not isinstance(s, int) or s > MOST for s in node.domain):
            return None
        if node.name not in needed:
            needed[node.name] = node
            for part in walk(node.expression):
                if isinstance(part, Load):
                    pending.append(part.value)
                elif not isinstance(part, (Op, Const, Iota)):
                    return None
    nodes = [node for node in builder.graph.nodes if node.name in needed]
    whole = Operand(index.value, index.dtype, (size,), (1,))
    with unset_fake_temporarily():  # capture's, in which tensors have no elements
        (found,) = run_graph(Graph("index", list(nodes), outputs=[whole]), [])
    return [int(number) for number in found.tolist()]


def formula(table: Sequence[int], shape: Shape, place: int) -> Expression | None:
    """The expression that equals a table, for a domain of this shape along whose digit `place` it
    varies. None if there is none."""
    least, greatest = min(table), max(table)
    for step, repeat, start in _candidates(table):
        if not all(
            found == min(max((step * x + start) // repeat, least), greatest)
            for x, found in enumerate(table)
        ):
            continue
        strides = tuple(step if digit == place else 0 for digit in range(len(shape)))
        index: Expression = Iota((Layout(shape, strides, start),))
        if repeat > 1:
            index = Op("floor_divide", (index, Const(repeat, "int64")), "int64")
        ends = start // repeat, (step * (len(table) - 1) + start) // repeat
        if ends[0] < least or ends[1] > greatest:
            index = Op("maximum", (index, Const(least, "int64")), "int64")
            index = Op("minimum", (index, Const(greatest, "int64")), "int64")
        return index
    return None


def _candidates(table: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(step, repeat, start) of formulas that equal the table in the middle."""
    x = (len(table) - 1) // 2
    step = table[x + 1] - table[x]
    if step in STEPS:
        yield step, 1, table[x] - step * x
    for repeat in REPEATS:
        for rest in range(repeat):
            yield 1, repeat, table[x] * repeat - x + rest
