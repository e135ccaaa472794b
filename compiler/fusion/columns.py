"""Columns: an element that an index picks from a computed value is computed at that index instead.

A cross-entropy reads one element of each row of a log-softmax. The row need not be written for
that: the few operations between the element and memory, or the row's scalars, are recomputed. So is
what a border of zeros surrounds (`borders.py`), as in the gradient of a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.borders import cheap, surrounded
from tcw.compiler.fusion.dependencies import Versions
from tcw.compiler.fusion.duplicates import carried
from tcw.compiler.fusion.leaves import is_compute, map_leaves, operands, reads
from tcw.compiler.fusion.rows import common, elements
from tcw.compiler.fusion.weights import Weights, instructions
from tcw.compiler.loops.expressions import Const, Expression, Gather, IndexTerm, Load, Op, SizeOf
from tcw.compiler.loops.graph import Call, Compute, Graph, Map, Node
from tcw.compiler.loops.layouts import Layout, View, compose, compose_views, normalize
from tcw.compiler.loops.sizes import Size, add, at_least, divide, multiply, subtract
from tcw.compiler.protocol.decision import Decision, Detail
from tcw.compiler.trace.plurals import plural

KIND = "column"
PICK = "pick"
STORE = "store"
MEANS = "stored: the whole value is written, and read at the index; picked: computed at the index"
FEWER = 16
"""Every reader must pick at most 1/FEWER of the value's elements."""
DEEP = 8
"""Maximum length of a chain of producers that is followed."""
WORK = 64
"""Maximum number of instructions recomputed per picked element."""


def with_columns(
    graph: Graph, weights: Weights, gate: Gate, names: dict[str, list[str]]
) -> list[Node]:
    """The graph's nodes, with gathers from computed values replaced if that is cheaper.

    `names` records what each reader now computes in addition.
    """
    maps = {node.name: node for node in graph.nodes if isinstance(node, Map)}
    places = {n.name: p for p, n in enumerate(graph.nodes) if not isinstance(n, Call)}
    stored = operands(graph)
    computed = {node.name for node in graph.nodes if is_compute(node)}
    versions = Versions(graph)

    readers = Counter(name for node in graph.nodes if is_compute(node) for name in _sources(node))
    shared = {name for name, count in readers.items() if count > 1}

    def follow(reader: str, also: set[str]) -> _Follow:
        return _Follow(maps, stored | also, shared, versions, places[reader], places, computed)

    def few(part: Gather, reader: Compute) -> bool:
        fewest = weights.number(elements(reader.domain)) * FEWER
        there = weights.number(elements(maps[part.value].domain))
        return there >= fewest and part.otherwise is None

    kept = [
        (part, node)
        for node in graph.nodes
        if is_compute(node)
        for part in reads(node)
        if isinstance(part, Gather) and part.value in maps
        if follow(node.name, set()).cheaply(part) is None
    ]
    written = {part.value for part, node in kept if not few(part, node)}
    kept_names = {part.value for part, _ in kept}
    nodes: list[Node] = []
    for node in graph.nodes:
        if not is_compute(node):
            nodes.append(node)
            continue

        def leaf(part: Expression, node: Compute = node) -> Expression:
            if not isinstance(part, Gather) or part.value not in maps or part.value in stored:
                return part
            source, reader = maps[part.value], node.name
            path = follow(reader, kept_names - {part.value})
            found = path.cheaply(part)
            if found is None and part.value not in written and few(part, node):
                path = follow(reader, set())
                found = path.at(source, part, DEEP)
            if found is None or not _checks(found):
                return part
            reason = f"{plural(path.work, 'instruction')} per picked element, nothing written"
            pair = (source.name, reader)
            decision = Decision(
                graph.name,
                KIND,
                pair,
                PICK,
                (PICK, STORE),
                "column",
                reason,
                {"instructions": path.work},
                detail=_detail(maps, path.path, node.origins) if gate.asks else None,
            )
            held = carried(path.path, names)
            both = (*held, *carried((reader,), names))  # a veto may name two nodes of the path
            done = gate.unless_vetoed(decision, STORE, both, both) == PICK
            if done:
                names.setdefault(reader, []).extend(held)
            return found if done else part

        made = map_leaves(node, leaf)
        more = names.get(node.name, ())
        extra = [o for n in reversed(more) if n in maps for o in maps[n].origins]
        nodes.append(replace(made, origins=tuple(dict.fromkeys((*extra, *made.origins)))))
    return nodes


def _detail(
    maps: dict[str, Map], path: list[str], origins: tuple[str, ...]
) -> Callable[[], Detail]:
    producers = [origin for name in reversed(path) for origin in maps[name].origins]
    both = tuple(dict.fromkeys((*producers, *origins)))
    return lambda: Detail(origins=both, means=MEANS)


def _sources(node: Compute) -> set[str]:
    """The values that a node reads."""
    return {part.value for part in reads(node)}


def _checks(expression: Expression) -> bool:
    """Whether a gather remains, which checks the index."""
    if isinstance(expression, Op):
        return any(_checks(argument) for argument in expression.args)
    return isinstance(expression, Gather)


@dataclass(slots=True)
class _Follow:
    """Expresses a value's element at an index in terms of memory."""

    maps: dict[str, Map]
    stored: set[str]
    shared: set[str]
    """Values with several readers, of which no part is copied."""
    versions: Versions
    reader: int
    places: dict[str, int]
    computed: set[str]
    work: int = 0
    path: list[str] = field(default_factory=list)
    """The values whose elements are recomputed."""

    def cheaply(self, where: Gather) -> Expression | None:
        """The element that `where` picks, if that is cheaper to compute than to keep."""
        found = self.at(self.maps[where.value], where, DEEP)
        if found is None or not cheap(found, where, self.work):
            return None
        return found if where.otherwise is None else surrounded(found, where)

    def at(self, node: Map, where: Gather, deep: int) -> Expression | None:
        """The element of `node` that `where` picks, or None if it cannot be expressed."""
        self.work += instructions(node)
        self.path.append(node.name)
        if not deep or self.work > WORK:
            return None
        return self._part(node.expression, node, where, deep)

    def _part(self, part: Expression, node: Map, where: Gather, deep: int) -> Expression | None:
        if isinstance(part, (Const, SizeOf)):
            return part
        if isinstance(part, Op):
            args = []
            for argument in part.args:
                found = self._part(argument, node, where, deep)
                if found is None:
                    return None
                args.append(found)
            return replace(part, args=tuple(args))
        if not isinstance(part, Load):
            return None
        if not self.versions.same(part.value, self.places[node.name], self.reader):
            return None
        seen = picked(part.view, where)
        if seen is None:
            return None
        view, terms = seen
        if not terms:
            return Load(part.value, view, part.dtype)
        found = Gather(part.value, view, terms, part.dtype)
        source = self.maps.get(part.value)
        copied = part is node.expression and part.value in self.shared
        if copied or part.value in self.stored or part.value not in self.computed:
            return found
        return None if source is None else self.at(source, found, deep - 1)


def picked(view: View, where: Gather) -> tuple[View, tuple[IndexTerm, ...]] | None:
    """`view` of a gather's result as a view and terms; None if digits would carry."""
    if len(view) > 1 or len(where.view) > 1:
        return None
    if not view:
        return where.view, where.terms
    base = normalize(where.view[0]) if where.view else None
    terms: list[IndexTerm] = []
    for term in where.terms:
        whole = divide(view[0].size, multiply(term.size, term.stride))
        if base is None or whole is None or not _free(base, term):
            return None
        if common((whole, term.size, term.stride), normalize(view[0]).shape or (1,)) is None:
            return None
        along = compose(view[0], Layout((term.size,), (term.stride,)))
        if along is None:
            return None
        along = normalize(replace(along, offset=0))
        if len(along.shape) > 1:
            return None
        stride = along.strides[0] if along.shape else 0
        if stride == 0 and where.otherwise is not None:
            if term.size != 1:
                return None  # what lies beyond the border depends on the index
            stride = term.stride
        if stride != 0:
            terms.append(replace(term, stride=stride))
    seen = compose_views(view, where.view)
    return (seen, tuple(terms)) if len(seen) <= 1 else None


def _free(base: Layout, term: IndexTerm) -> bool:
    """Whether a view is constant in the digit that a term moves along."""
    above = multiply(term.stride, term.size)
    reach: Size = 0
    parts = list(zip(base.shape, base.strides, strict=True))
    for size, stride in (*parts, (2, base.offset)):
        if stride == 0 or divide(stride, above) is not None:
            continue
        if not at_least(stride, 0):
            return False
        reach = add(reach, multiply(subtract(size, 1), stride))
    return at_least(subtract(term.stride, 1), reach)
