"""Inlining: a map becomes part of its readers if recomputing it is cheaper than storing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.dependencies import Versions
from tcw.compiler.fusion.leaves import is_compute, map_leaves, reads
from tcw.compiler.fusion.longer_runs import shortens_runs
from tcw.compiler.fusion.rows import elements
from tcw.compiler.fusion.weights import CHEAP, Weights, instructions
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Expression, Gather, Load, through, walk
from tcw.compiler.loops.graph import Compute, Graph, Map, Node, Reduce
from tcw.compiler.loops.layouts import View, compose_views, normalize
from tcw.compiler.loops.printer.print_graphs import node_text
from tcw.compiler.protocol.decision import Decision, Detail
from tcw.compiler.trace.plurals import plural

KIND = "inline"
INLINE = "inline"
KEEP = "keep"
INVARIANT = 8
"""Minimum number of reads per element for a loop invariant to be inlined."""
SPARE = 1.125
"""Maximum bytes read per byte of result for a cheap map; the margin allows for row scalars."""
MEANS = "kept: a value with its own loops; inlined: each reader computes it on the spot"
LARGEST = 64
"""Maximum size of an expression, in nodes, that is copied into several readers."""


@dataclass(slots=True)
class Use:
    """One read of a map."""

    reader: int
    view: View


def inlined(
    graph: Graph,
    weights: Weights,
    gate: Gate,
    fixed: set[str],
    names: dict[str, list[str]],
    known_as: Callable[[Iterable[str]], tuple[str, ...]],
) -> list[Node]:
    """The graph's nodes, with cheap maps inlined into their readers; `fixed` maps stay.

    Values of short runs and invariants are visited last to first, so that a chain of them moves
    into the loop that reads its end. All other maps follow in order, so that a chain of cheap maps
    reads the memory at its start. `names` records which nodes each node also computes; inlined
    nodes are added. `known_as` returns the names under which the user knows nodes.
    """
    pass_ = _Pass(graph, weights, gate, fixed, names, known_as)
    places = range(len(graph.nodes))
    for place in reversed(places):
        pass_.consider(place, pass_.short_run)
    for place in reversed(places):
        pass_.consider(place, pass_.invariant)
    for place in places:
        pass_.consider(place, pass_.other)
    return [node for place, node in enumerate(pass_.nodes) if place not in pass_.gone]


class _Pass:
    """State shared by all rules."""

    def __init__(
        self,
        graph: Graph,
        weights: Weights,
        gate: Gate,
        fixed: set[str],
        names: dict[str, list[str]],
        known_as: Callable[[Iterable[str]], tuple[str, ...]],
    ) -> None:
        self.known_as = known_as
        self.graph = graph
        self.weights = weights
        self.gate = gate
        self.nodes = list(graph.nodes)
        self.names = names
        self.fixed = fixed
        self.runs = shortens_runs(graph, weights, fixed)
        self.versions = Versions(graph)
        self.uses = _uses(self.nodes)
        self.gone: set[int] = set()
        self.computed: set[str] = set()
        """Nodes that nests compute."""
        self.sizes: dict[str, int] = {}
        """How many elements they have."""
        self.impure: set[str] = set()
        self.work: dict[str, int] = {}
        """The instructions that compute an element from its position, for values that read no
        memory."""
        for node in graph.nodes:
            if is_compute(node):
                self.computed.add(node.name)
                self.sizes[node.name] = weights.elements(node)
                sources = [leaf.value for leaf in reads(node)]
                if all(source in self.work for source in sources):
                    below = sum(self.work[source] for source in sources)
                    self.work[node.name] = instructions(node) + below
                if not isinstance(node, Map) or any(
                    isinstance(leaf, Gather) or leaf.value in self.impure for leaf in reads(node)
                ):
                    self.impure.add(node.name)

    def consider(self, place: int, rule_of: Callable[[Map, list[Use]], tuple[str, str]]) -> None:
        """Inline a map where the rule returns its name and a reason, not two empty texts."""
        node = self.nodes[place]
        if not isinstance(node, Map) or node.name in self.fixed or place in self.gone:
            return
        mine = [use for use in self.uses.get(node.name, ()) if use.reader not in self.gone]
        if not mine:
            return
        rule, reason = rule_of(node, mine)
        if not rule:
            return
        nodes, names = self.nodes, self.names
        readers = tuple(dict.fromkeys(nodes[use.reader].name for use in mine))
        stale = self._overwritten(node, mine, place)
        forbidden = {INLINE: ("overwritten", stale)} if stale else {}
        default = KEEP if stale else INLINE
        if stale:
            rule, reason = "overwritten", stale
        decision = Decision(
            self.graph.name,
            KIND,
            (node.name,),
            default,
            (INLINE, KEEP),
            rule,
            reason,
            forbidden=forbidden,
            detail=self._detail(node, mine) if self.gate.asks else None,
        )
        held = [node.name, *names.get(node.name, ())]
        readers_held = [n for reader in readers for n in (reader, *names.get(reader, ()))]
        done = self.gate.unless_vetoed(decision, KEEP, held, readers_held) == INLINE
        if done:
            self._carry_out(node, mine, held)
            self.gone.add(place)

    def _carry_out(self, node: Map, mine: list[Use], held: list[str]) -> None:
        for place in dict.fromkeys(use.reader for use in mine):
            reader = self.nodes[place]
            assert is_compute(reader)
            self.nodes[place] = _with(node, reader)
            names = self.names.setdefault(reader.name, [])
            names.extend(name for name in held if name not in names)
        for source in reads(node):
            for use in mine:
                view = compose_views(source.view, use.view)
                self.uses[source.value].append(Use(use.reader, view))
        del self.uses[node.name]

    def _detail(self, node: Map, mine: list[Use]) -> Callable[[], Detail]:
        def detail() -> Detail:
            places = dict.fromkeys(use.reader for use in mine)
            readers = [reader for place in places if is_compute(reader := self.nodes[place])]
            return Detail(
                first=self.known_as((node.name,)),
                second=self.known_as(reader.name for reader in readers),
                origins=tuple(dict.fromkeys(o for n in (node, *readers) for o in n.origins)),
                if_fused="".join(f"{node_text(_with(node, reader))}\n" for reader in readers),
                means=MEANS,
            )

        return detail

    def _overwritten(self, node: Map, mine: list[Use], place: int) -> str:
        for source in reads(node):
            for use in mine:
                if not self.versions.same(source.value, place, use.reader):
                    return f"{source.value} is overwritten before its last reader"
        return ""

    def short_run(self, node: Map, mine: list[Use]) -> tuple[str, str]:
        runs = self.runs.get(node.name)
        if runs is None or not _small(node, mine):
            return "", ""
        return "short run", f"without it, runs of {runs[0]} elements are runs of {runs[1]}"

    def invariant(self, node: Map, mine: list[Use]) -> tuple[str, str]:
        if node.name in self.impure or not _small(node, mine):
            return "", ""
        cost = instructions(node)
        size = self.weights.number(elements(node.domain))
        sizes = [_domain(self.nodes[use.reader], self.weights) for use in mine]
        often = all(count >= INVARIANT * size for count in sizes)
        if (
            often
            and self.work.get(node.name, 0) > CHEAP
            and not all(_still(use.view) for use in mine)
        ):
            return "", ""
        if not any(True for _ in reads(node)) and cost <= (CHEAP if len(mine) > 1 else 4 * CHEAP):
            return "constant", f"needs no memory, {plural(cost, 'instruction')} per element"
        if not often:
            return "", ""
        if cost > CHEAP and not all(_still(use.view) for use in mine):
            return "", ""
        times = min(sizes) // max(1, size)
        return "invariant", f"read {times} times per element, {plural(cost, 'instruction')}"

    def other(self, node: Map, mine: list[Use]) -> tuple[str, str]:
        sources = list(reads(node))
        if not _small(node, mine):
            return "", ""
        made = [source for source in sources if source.value in self.computed]
        if made and (len(mine) > 1 or not self._few(node, mine[0], made)):
            return "", ""
        if not self.weights.machine.divides and any(_divided(node, use.view) for use in mine):
            return "", ""
        whole = elements(node.domain)
        size = self.weights.number(whole)
        cost = instructions(node)
        result = BYTES.get(node.dtype, 4)
        moved = sum(self.weights.touched(source, whole) for source in _once(sources)) / max(1, size)
        if cost < CHEAP and moved <= result * SPARE:
            return "cheap", f"reads {moved:g} bytes per element, its result has {result}"
        seen = sum(_domain(self.nodes[use.reader], self.weights) for use in mine)
        if any(isinstance(source, Gather) for source in sources):
            return "", ""
        if all(_apart(use.view) for use in mine) and seen <= size:
            return "disjoint", f"{len(mine)} readers see {seen} of {size} elements, none twice"
        return "", ""

    def _few(self, node: Map, use: Use, sources: list[Load | Gather]) -> bool:
        """Whether values that nests compute have few elements, each of which a map repeats often:
        a reduction of columns, whose nest theirs cannot be, then reads these, and not as many as
        the map has."""
        reader = self.nodes[use.reader]
        if not isinstance(reader, Reduce) or reader.reduced[-1]:
            return False
        size = self.weights.number(elements(node.domain))
        return all(
            isinstance(source, Load)
            and len(compose_views(source.view, use.view)) == 1
            and INVARIANT * self.sizes[source.value] <= size
            for source in sources
        )


def _once(sources: list[Load | Gather]) -> list[Load | Gather]:
    """The reads, with equal picks by an index counted once, as in the square of a padded value."""
    picked = dict.fromkeys(source for source in sources if isinstance(source, Gather))
    return [*(source for source in sources if isinstance(source, Load)), *picked]


def _small(node: Map, mine: list[Use]) -> bool:
    return len(mine) == 1 or sum(1 for _ in walk(node.expression)) <= LARGEST


def _uses(nodes: list[Node]) -> dict[str, list[Use]]:
    uses: dict[str, list[Use]] = {}
    for place, node in enumerate(nodes):
        if is_compute(node):
            for leaf in reads(node):
                uses.setdefault(leaf.value, []).append(Use(place, leaf.view))
    return uses


def _with(node: Map, reader: Compute) -> Compute:
    """The reader with a map substituted into its expressions."""
    whole, seen = elements(node.domain), elements(reader.domain)

    def leaf(part: Expression) -> Expression:
        if isinstance(part, Load) and part.value == node.name:
            return through(node.expression, part.view, whole, seen)
        return part

    origins = tuple(dict.fromkeys((*node.origins, *reader.origins)))
    return replace(map_leaves(reader, leaf), origins=origins)


def _apart(view: View) -> bool:
    """Whether the view is a single layout that maps no two indices to the same element."""
    if len(view) != 1:
        return False
    return all(stride != 0 for stride in normalize(view[0]).strides)


def _divided(node: Map, view: View) -> bool:
    """Whether the map's reads and the view are strided by themselves, but not composed: each index
    of the view would have to be divided into digits."""
    return len(view) == 1 and any(
        len(source.view) == 1 and len(compose_views(source.view, view)) > 1
        for source in reads(node)
    )


def _still(view: View) -> bool:
    """Whether a view is constant along the innermost digit."""
    if len(view) != 1:
        return False
    strides = normalize(view[0]).strides
    return not strides or strides[-1] == 0


def _domain(node: Node, weights: Weights) -> int:
    assert is_compute(node)
    return weights.number(elements(node.domain))
