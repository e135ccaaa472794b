"""A value with a border that only loops read becomes a read with a constant beyond the border.

Windows over a padded image (`local_response_norm`) read each of its elements a few times. As a map
the image is computed in their loop and never written, whereas a buffer made of pieces would be in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import copysign

from tcw.compiler.fusion.dependencies import apart
from tcw.compiler.fusion.duplicates import carried
from tcw.compiler.fusion.leaves import in_memory, is_compute, reads, stores_into, uses
from tcw.compiler.fusion.rows import elements
from tcw.compiler.fusion.weights import CHEAP, Weights, instructions
from tcw.compiler.loops.dtypes import BYTES, FLOATS
from tcw.compiler.loops.expressions import (
    Const,
    Expression,
    Gather,
    IndexTerm,
    Iota,
    Load,
    Op,
    rewrite,
)
from tcw.compiler.loops.graph import Buffer, Compute, Graph, Map, Node, Store
from tcw.compiler.loops.layouts import Layout, normalize, row_major, strides_over
from tcw.compiler.loops.sizes import product

ROW = 64
"""Elements of a run of memory from which its place can be looked up once for all of them."""
WINDOW = 27
"""Maximum number of times that each element is read, and so may be computed."""


def with_borders(graph: Graph, weights: Weights, names: dict[str, list[str]]) -> list[Node]:
    """The graph's nodes, with such buffers as maps. `names` records what each map computes."""
    stores = stores_into(graph)
    buffers = {n.name: n for n in graph.nodes if isinstance(n, Buffer) and n.name in stores}
    left_out = in_memory(graph) | _busy(graph, buffers, weights)
    computed = {node.name: node for node in graph.nodes if is_compute(node)}
    found: dict[str, Map] = {}
    for name, buffer in buffers.items():
        made = None if name in left_out else _surrounded(buffer, stores[name])
        if made is not None and _reads_memory(made, computed):
            found[stores[name][-1].name] = made
            pieces = carried([store.name for store in stores[name]], names)
            names.setdefault(name, []).extend(pieces)
    replaced = {made.name for made in found.values()}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name in found:
            nodes.append(found[node.name])
        elif node.name not in replaced and not (
            isinstance(node, Store) and node.buffer in replaced
        ):
            nodes.append(node)
    return nodes


def _busy(graph: Graph, buffers: dict[str, Buffer], weights: Weights) -> set[str]:
    """Buffers that something other than a map reads, or maps read too often."""
    seen = dict.fromkeys(buffers, 0)
    found: set[str] = set()
    for node, leaf in uses(graph.nodes):
        if leaf.value in seen:
            seen[leaf.value] += weights.number(elements(node.domain))
            if not isinstance(node, Map):
                found.add(leaf.value)
    for name, count in seen.items():
        if not 0 < count <= WINDOW * weights.elements(buffers[name]):
            found.add(name)
    return found


def _reads_memory(made: Map, computed: Mapping[str, Compute]) -> bool:
    """Whether what the border surrounds is in memory, or cheap to compute where it is read."""
    read = made.expression
    assert isinstance(read, Gather)
    source = computed.get(read.value)
    if source is None:
        return True
    if not isinstance(source, Map) or any(leaf.value in computed for leaf in reads(source)):
        return False
    found = rewrite(source.expression, _picked)
    return cheap(found, read, instructions(source)) and surrounded(found, read) is not None


def _picked(part: Expression) -> Expression:
    return Gather(part.value, (), (), part.dtype) if isinstance(part, Load) else part


def _surrounded(buffer: Buffer, stores: Sequence[Store]) -> Map | None:
    """The buffer as a map, if one store fills a box of long rows and the others the same number
    around it."""
    inner = [store for store in stores if not isinstance(store.expression, Const)]
    numbers = [store.expression.number for store in stores if isinstance(store.expression, Const)]
    if len(inner) != 1 or len({(str(number), type(number)) for number in numbers}) != 1:
        return None
    if any(store.mode != "set" or store.terms or len(store.view) > 1 for store in stores):
        return None
    if sum(n for s in stores if isinstance(n := elements(s.domain), int)) != product(buffer.shape):
        return None
    if not all(apart(one, two) for one, two in combinations(stores, 2)):
        return None
    (box,) = inner
    starts, loaded = _starts(buffer, box), box.expression
    if starts is None or not isinstance(loaded, Load) or len(loaded.view) > 1:
        return None
    padded = [d for d, size in enumerate(buffer.shape) if size != box.domain[d]]
    row = product(buffer.shape[padded[-1] + 1 :])
    source = loaded.view[0] if loaded.view else row_major(box.domain)
    strides = strides_over(source, box.domain)
    if strides is None or not isinstance(row, int) or row < ROW:
        return None
    view = Layout(buffer.shape, tuple(0 if d in padded else s for d, s in enumerate(strides)))
    terms = tuple(
        IndexTerm(
            Iota(
                (Layout(buffer.shape, tuple(int(o == d) for o in range(len(strides))), -starts[d]),)
            ),
            box.domain[d],
            strides[d],
            wraps=False,
            checked=False,
        )
        for d in padded
    )
    view = replace(view, offset=source.offset)
    read = Gather(loaded.value, (view,), terms, loaded.dtype, numbers[0])
    origins = tuple(dict.fromkeys(origin for store in stores for origin in store.origins))
    return Map(buffer.name, buffer.dtype, buffer.shape, read, origins)


def _starts(buffer: Buffer, box: Store) -> list[int] | None:
    """Where a store's box begins in each dimension; None if it is not part of the buffer's box."""
    if len(box.domain) != len(buffer.shape) or not box.view:
        return None
    offset, starts = box.view[0].offset, []
    whole = row_major(buffer.shape)
    for size, stride in zip(buffer.shape, whole.strides, strict=True):
        if not (isinstance(offset, int) and isinstance(stride, int) and isinstance(size, int)):
            return None
        start, offset = divmod(offset, stride)
        starts.append(start)
    placed = Layout(box.domain, whole.strides, box.view[0].offset)
    return starts if normalize(placed) == normalize(box.view[0]) else None


def cheap(found: Expression, read: Gather, work: int) -> bool:
    """Whether an element that an index picks is cheaper to compute there than to keep.

    `found` is the element in terms of memory, and takes `work` instructions.
    """
    leaves = set(_leaves(found))
    if work > CHEAP or not all(isinstance(leaf, Gather) for leaf in leaves):
        return False
    return sum(BYTES[leaf.dtype] for leaf in leaves) <= BYTES[read.dtype]


def _leaves(expression: Expression) -> Iterator[Gather | Load]:
    """The elements that an expression reads, without the indices at which it reads them."""
    if isinstance(expression, Op):
        for argument in expression.args:
            yield from _leaves(argument)
    elif isinstance(expression, (Gather, Load)):
        yield expression


def surrounded(found: Expression, read: Gather) -> Expression | None:
    """x inside a border, where f(x) inside a border of zeros was read; None unless f(0) = 0, or
    negative zeros and f(-0) = 0. Then nothing is written."""
    if read.otherwise != 0 or copysign(1, read.otherwise) < 0:
        return None
    if any(term.checked for term in read.terms):
        return None
    for border in (0.0, -0.0):
        value = _with_zeros(found, border)
        if value == 0 and copysign(1, value) > 0:
            return rewrite(found, partial(_bordered, border=border))
    return None


def _bordered(part: Expression, border: float) -> Expression:
    return replace(part, otherwise=border) if isinstance(part, Gather) else part


def _with_zeros(expression: Expression, zero: float) -> float:
    """The value of an expression of floats whose reads are all this zero; NaN if it is unknown."""
    unknown = float("nan")
    if isinstance(expression, Gather):
        return zero if expression.dtype in FLOATS else unknown
    if isinstance(expression, Const):
        return float(expression.number)
    if not isinstance(expression, Op) or expression.dtype not in FLOATS:
        return unknown
    args = [_with_zeros(argument, zero) for argument in expression.args]
    match expression.name, args:
        case (("convert" | "rounded"), [x]):
            return x if x == 0 else unknown
        case "neg", [x]:
            return -x
        case "mul", [x, y]:
            return x * y
        case "div", [x, y] if y != 0:
            return x / y
        case "add", [x, y]:
            return x + y
        case "sub", [x, y]:
            return x - y
    return unknown
