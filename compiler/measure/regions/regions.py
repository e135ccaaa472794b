"""Regions: the smallest sets of compiled steps and eager operations that share no work.

What the two sides share is a *task*: the work of one captured call in one phase. An eager operation
has the task of the call that ran it, found by its line and module. A step has the tasks of the
captured nodes that it computes. If both sides run the same ATen operations for one call (the two
products of a linear layer's backward), each operation is a separate task. A region is a connected
component: two tasks are joined by a step or an operation that does work of both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tcw.compiler.measure.regions.alignment import (
    MAY_COPY,
    aligned,
    kind,
    may_run,
    plain_word,
    words,
)
from tcw.compiler.measure.regions.origins import (
    Computes,
    NodeRef,
    Origins,
    Site,
    site_of,
    word,
)
from tcw.compiler.measure.regions.same_sites import Canonical, as_captured
from tcw.compiler.measure.work.operations import VIEWS
from tcw.compiler.trace.matching import DisjointSets
from tcw.compiler.trace.records import Location
from tcw.compiler.trace.records.base import Size
from tcw.compiler.trace.records.profile import CompiledStep, EagerOperation

Task = tuple[Hashable, ...]
"""Begins with (phase, call)."""

_Where = tuple[str, Hashable]
"""(phase, call)."""

PRODUCTS = words(
    """mm bmm mv addmv dot convolution convolution_backward embedding
    embedding_dense_backward scaled_dot_product_flash_attention_for_cpu
    scaled_dot_product_flash_attention scaled_dot_product_efficient_attention
    scaled_dot_product_flash_attention_for_cpu_backward scaled_dot_product_flash_attention_backward
    scaled_dot_product_efficient_attention_backward scaled_dot_product_cudnn_attention
    scaled_dot_product_cudnn_attention_backward"""
)
"""Operations that neither engine decomposes: equally many of them on both sides form pairs."""

_UNWRITTEN: Site = ("", "", 0)
"""The site of what the model itself does without a line of the user's, such as a lone `nn.LSTM`."""

_LABEL_WORDS = 3


@dataclass
class PlacedStep:
    """A step with what it computes."""

    step: CompiledStep
    computes: Computes
    counted: list[NodeRef] = field(default_factory=list)
    """The captured nodes whose work the step does: set by `regions`."""


@dataclass
class Grouped:
    """A region before its times are known."""

    steps: list[PlacedStep] = field(default_factory=list)
    operations: list[EagerOperation] = field(default_factory=list)


def regions(
    origins: Origins,
    steps: Sequence[PlacedStep],
    operations: Sequence[EagerOperation],
    compile_ids: Iterable[str],
    canonical: Canonical = lambda path: path,
) -> list[Grouped]:
    """All steps and operations, each in one region, in the order of the eager call."""
    tasks = _Tasks(origins, operations, compile_ids, canonical)
    tasks.pair(steps)
    roots: DisjointSets[Task] = DisjointSets()
    of_step = [tasks.of_step(placed) for placed in steps]
    views = [tasks.call_of_view(placed) for placed in steps]
    of_operation = [tasks.of_operation(operation) for operation in operations]
    working = [
        found
        for operation, found in zip(operations, of_operation, strict=True)
        if not is_view(operation)
    ]
    first: dict[Task, Task] = {}
    doing = [found for found, view in zip(of_step, views, strict=True) if view is None]
    for found in (*doing, *working):
        roots.join(found)
        for task in found:
            first.setdefault(task[:2], task)
    # a view belongs with its call's work, or by itself if the call does none
    of_operation = [
        {first.get(next(iter(found))[:2], next(iter(found)))} if is_view(operation) else found
        for operation, found in zip(operations, of_operation, strict=True)
    ]
    of_step = [
        found if view is None else {first.get(view, next(iter(found)))}
        for found, view in zip(of_step, views, strict=True)
    ]
    groups: dict[Task, Grouped] = {}
    for operation, found in zip(operations, of_operation, strict=True):
        _into(groups, roots, found).operations.append(operation)
    for placed, found in zip(steps, of_step, strict=True):
        _into(groups, roots, found).steps.append(placed)
    return list(groups.values())


def _into(groups: dict[Task, Grouped], roots: DisjointSets[Task], tasks: set[Task]) -> Grouped:
    return groups.setdefault(roots.root(next(iter(tasks))), Grouped())


def is_view(operation: EagerOperation) -> bool:
    """Whether an eager operation touches no memory."""
    return operation.launches == 0


class _Tasks:
    """Maps both sides to the calls of the user's program."""

    def __init__(
        self,
        origins: Origins,
        operations: Sequence[EagerOperation],
        compile_ids: Iterable[str],
        canonical: Canonical,
    ) -> None:
        self.origins = origins
        self.operations = operations
        self._calls: dict[NodeRef, Hashable] = {}
        """Captured node -> its call."""
        self._runs: dict[str, Hashable] = {}
        """Id of an eager operation -> its call."""
        self._at: dict[Site, list[Hashable]] = defaultdict(list)
        """All calls of a line."""
        self._paired: dict[tuple[str, Hashable, Hashable], Task] = {}
        """(phase, call, lowered node or eager operation) -> its own task."""
        self._settled: set[tuple[str, Hashable]] = set()
        """Calls whose eager operations are all paired: further lowered nodes that torch attributes
        to them (accumulated gradients) are not their work."""
        self._held: set[Site] = set()
        """Sites of captured nodes."""
        self._uncaptured: dict[tuple[str, str], list[EagerOperation]] = defaultdict(list)
        """(phase, kind) -> operations in no graph, in order: first those of lines without any
        captured call, then those that no captured call of their line runs."""
        self._as_captured: dict[Site, Site] = {}
        """Sites of eager operations that captured graphs name differently."""
        self._written_backward: dict[Site, list[EagerOperation]] = defaultdict(list)
        """Operations of lines that only a backward runs: those of a custom autograd function."""
        self._line_up(list(compile_ids), canonical)

    def _site(self, operation: EagerOperation) -> Site | None:
        """The site of an operation, as captured graphs name it."""
        site = site_of(operation.module, operation.location)
        if site is None:
            forward = operation.part == "model" and operation.phase in ("", "forward")
            return _UNWRITTEN if forward and _UNWRITTEN in self._held else None
        return self._as_captured.get(site, site)

    def _line_up(self, compile_ids: list[str], canonical: Canonical) -> None:
        captured: dict[Site, list[NodeRef]] = defaultdict(list)
        for ref in self.origins.captured_nodes(compile_ids):
            node = self.origins.nodes[ref]
            captured[site_of(node.module, node.location) or _UNWRITTEN].append(ref)
        self._held = set(captured)
        by_graph: dict[str, set[Site]] = defaultdict(set)
        for site, refs in captured.items():
            for graph, _ in refs if site != _UNWRITTEN else ():
                by_graph[graph].add(site)
        written = {site_of(operation.module, operation.location) for operation in self.operations}
        eager = {site for site in written if site is not None}
        self._as_captured = as_captured(by_graph.values(), eager, canonical)
        running: dict[Site, list[EagerOperation]] = defaultdict(list)
        for operation in self.operations:
            here = self._site(operation)
            if here is not None and operation.phase in ("", "forward"):
                running[here].append(operation)
        for site in dict.fromkeys((*captured, *running)):
            self._line_up_site(site, captured[site], running[site])
        known = {operation.id: operation for operation in self.operations}
        beside: list[EagerOperation] = []
        for eager_operation in self.operations:
            here = self._site(known.get(eager_operation.of, eager_operation))
            if eager_operation.part != "model":
                continue
            if here is None or here not in self._held:
                self._leave_out(eager_operation)
            elif eager_operation.phase != "backward" and not self._may_be_captured(
                eager_operation, captured[here]
            ):
                beside.append(eager_operation)
        for one in beside:
            self._leave_out(one)
        for one in self.operations:
            here = self._site(one)
            if one.of and here is not None and here not in self._at:
                self._written_backward[here].append(one)

    def _leave_out(self, operation: EagerOperation) -> None:
        like = kind(plain_word(word(operation.operation)))
        self._uncaptured[operation.phase, like].append(operation)

    def _may_be_captured(self, operation: EagerOperation, refs: Sequence[NodeRef]) -> bool:
        """Whether a captured call of a line may run an operation of that line. Graphs may hold only
        part of a line: for `print(float(x.norm()))` they have the norm, and Python the rest."""
        name = plain_word(word(operation.operation))
        return any(may_run(plain_word(word(self.origins.nodes[ref].target)), name) for ref in refs)

    def _line_up_site(
        self, site: Site, refs: list[NodeRef], operations: list[EagerOperation]
    ) -> None:
        names = [plain_word(word(self.origins.nodes[ref].target)) for ref in refs]
        calls = [i for i, name in enumerate(names) if name not in VIEWS or name in MAY_COPY]
        runs = [operation for operation in operations if not is_view(operation)]
        found = aligned(
            [names[i] for i in calls], [plain_word(word(run.operation)) for run in runs]
        )
        whole: Hashable = ("line", site)
        # of several compiles of one frame, which one ran how often is not known here
        graphs = {graph for graph, _ in refs}
        several = len({graph.partition("/")[0] for graph in graphs}) < len(graphs)
        if found is None or len(calls) < 2 or several:
            self._calls |= dict.fromkeys(refs, whole)
            self._runs |= {operation.id: whole for operation in operations}
            self._at[site] = [whole]
            return
        for operation, place in zip(runs, found, strict=True):
            self._runs[operation.id] = ("call", refs[calls[place]])
        for i in calls:
            self._calls[refs[i]] = ("call", refs[i])
        tasks = list(dict.fromkeys(self._calls[refs[i]] for i in calls))
        self._at[site] = tasks
        # a view goes with the call before it: it does no work and joins nothing
        for place, ref in enumerate(refs):
            before = [i for i in calls if i <= place] or calls
            self._calls.setdefault(ref, self._calls[refs[before[-1]]])
        last = tasks[0]
        for operation in operations:
            last = self._runs.setdefault(operation.id, last)

    def pair(self, steps: Sequence[PlacedStep]) -> None:
        """Give each ATen operation that both sides run a separate task."""
        lowered: dict[_Where, dict[Hashable, str]] = defaultdict(dict)
        places = {ref: place for place, ref in enumerate(self.origins.nodes)}
        run = [(placed.step.phase, ref) for placed in steps for ref in placed.computes.lowered]
        # in graph order: which step runs first is the scheduler's choice
        for phase, ref in sorted(run, key=lambda one: places[one[1]]):
            name = kind(plain_word(word(self.origins.nodes[ref].target)))
            for call in self._calls_of(ref):
                lowered[phase, call][ref] = name
        eager: dict[_Where, dict[Hashable, str]] = defaultdict(dict)
        for operation in self.operations:
            if not is_view(operation):
                for call in self._calls_run_by(operation):
                    eager[operation.phase, call][operation.id] = kind(
                        plain_word(word(operation.operation))
                    )
        for where in lowered.keys() & eager.keys():
            self._pair(where, lowered[where], eager[where])

    def _pair(
        self, where: _Where, lowered: dict[Hashable, str], eager: dict[Hashable, str]
    ) -> None:
        ours, theirs = _by_name(lowered), _by_name(eager)
        equal = {name for name, found in theirs.items() if len(ours.get(name, ())) == len(found)}
        # what is left of a forward's call is a part of it, not a sum of gradients
        every = equal == theirs.keys() and (where[0] == "backward" or ours.keys() == equal)
        if every:
            self._settled.add(where)
        for name in sorted(equal if every else equal & PRODUCTS):
            alike = self._alike(ours[name], theirs[name])
            for place, keys in enumerate(zip(ours[name], alike, strict=True)):
                for key in keys:
                    self._paired[*where, key] = (*where, name, place)

    def _alike(self, nodes: Sequence[Hashable], operations: list[Hashable]) -> list[Hashable]:
        """Equal operations, ordered by the lowered nodes whose results have their sizes; unchanged
        if they cannot all be matched."""
        left, found = list(operations), []
        for ref in nodes:
            sizes = self._sizes[ref]
            same = next(
                (hashable for hashable in left if sizes and self._sizes[hashable] == sizes), None
            )
            if same is None:
                return operations
            left.remove(same)
            found.append(same)
        return found

    @cached_property
    def _sizes(self) -> Mapping[Hashable, tuple[Size, ...] | None]:
        """(lowered node or id of an eager operation) -> sizes of its first result."""
        sizes: dict[Hashable, tuple[Size, ...] | None] = {}
        for ref, node in self.origins.nodes.items():
            first = next(filter(None, (node.value, *node.values)), None)
            sizes[ref] = first.shape if first else None
        for operation in self.operations:
            sizes[operation.id] = operation.outputs[0].shape if operation.outputs else None
        return sizes

    def _calls_of(self, ref: NodeRef) -> list[Hashable]:
        """The calls that a lowered node does work of."""
        found = self._captured(ref)
        return list(dict.fromkeys(self._calls[one] for one in found if one in self._calls))

    def _captured(self, ref: NodeRef) -> list[NodeRef]:
        """The captured nodes that a lowered node was made from; none for code written for a
        backward alone. Torch derives the origin of that from autograd's sequence number, which it
        shares with whatever was captured last."""
        node = self.origins.nodes[ref]
        site = site_of(node.module, node.location)
        return [] if site in self._written_backward else sorted(self.origins.captured(ref))

    def _calls_run_by(self, operation: EagerOperation) -> list[Hashable]:
        """The call that an eager operation is work of; all calls of its line if that is unknown; in
        a backward, the call of the forward operation."""
        known = self._runs.get(operation.of or operation.id)
        if known is not None:
            return [known]
        site = self._site(operation)
        return self._at.get(site, []) if site is not None else []

    def of_operation(self, operation: EagerOperation) -> set[Task]:
        """The operation's tasks; never empty."""
        found = {
            self._paired.get((operation.phase, call, operation.id), (operation.phase, call))
            for call in self._calls_run_by(operation)
        }
        name = plain_word(word(operation.operation))
        return found or {(operation.phase, ("nowhere", operation.part, name))}

    def of_step(self, placed: PlacedStep) -> set[Task]:
        """The step's tasks; never empty."""
        phase, step = placed.step.phase, placed.step
        found: set[Task] = set()
        for ref in placed.computes.lowered:
            nodes = self._captured(ref)
            if not nodes:
                found |= {(phase, call) for call in self._inside(ref)}
            for captured in nodes:
                call = self._calls.get(captured)
                task = self._paired.get((phase, call, ref))
                if call is None or (task is None and (phase, call) in self._settled):
                    continue
                found.add(task if task is not None else (phase, call))
                if captured not in placed.counted:
                    placed.counted.append(captured)
        if found:
            return found
        if step.kind == "eager":
            return self._of_eager(step)
        for site in sorted(placed.computes.sites):
            found |= {(phase, call) for call in self._at.get(site, [])}
        return found or {(phase, ("step", step.id))}

    def call_of_view(self, placed: PlacedStep) -> tuple[Hashable, ...] | None:
        """The (phase, call) of a step that only computes views; None for any other step."""
        refs = placed.computes.lowered
        if not refs or any(word(self.origins.nodes[ref].target) not in VIEWS for ref in refs):
            return None
        calls = [call for ref in refs for call in self._calls_of(ref)]
        return (placed.step.phase, calls[0]) if calls else None

    def _inside(self, ref: NodeRef) -> list[Hashable]:
        """The calls on the line of a lowered node that no captured node stands for. A custom
        autograd function or the body of a scan is one captured node, but has lines of its own."""
        node = self.origins.nodes[ref]
        site = site_of(node.module, node.location)
        if site is None or site in self._held:
            return []
        backward = self._written_backward.get(site, [])
        written = dict.fromkeys(
            call for operation in backward for call in self._calls_run_by(operation)
        )
        return self._at.get(site) or list(written)

    def _of_eager(self, step: CompiledStep) -> set[Task]:
        """The tasks of a step outside graphs: those of the same operation in eager. Both sides run
        the same Python there, in the same order; the profiler that recorded it reports no lines."""
        like = kind(plain_word(word(step.name)))
        if step.part == "model":
            for operation in self._uncaptured.get((step.phase, like), []):
                self._uncaptured[step.phase, like].remove(operation)
                return self.of_operation(operation)
        return {(step.phase, ("nowhere", step.part, plain_word(word(step.name))))}


def _by_name(found: dict[Hashable, str]) -> dict[str, list[Hashable]]:
    names: dict[str, list[Hashable]] = defaultdict(list)
    for key, name in found.items():
        names[name].append(key)
    return names


def label(origins: Origins, group: Grouped) -> str:
    """A region as text: the calls of the user's program in it."""
    order = {ref: place for place, ref in enumerate(origins.nodes)}
    refs = {ref for placed in group.steps for ref in placed.counted}
    names = [
        plain_word(word(origins.nodes[ref].target)) for ref in sorted(refs, key=lambda r: order[r])
    ]
    backward = any(placed.step.phase == "backward" for placed in group.steps)
    if not names:
        backward = False
        names = [plain_word(word(operation.operation)) for operation in group.operations]
        names = names or [
            placed.computes.kernel.label
            if placed.computes.kernel
            else plain_word(word(placed.step.name))
            for placed in group.steps
        ]
    distinct = list(dict.fromkeys(names))
    working = [name for name in distinct if name not in VIEWS] or distinct
    text = " + ".join(_spoken(name) for name in working[:_LABEL_WORDS])
    if len(working) > _LABEL_WORDS:
        text += f" + {len(working) - _LABEL_WORDS} more"
    parts = {operation.part for operation in group.operations} | {p.step.part for p in group.steps}
    if len(parts) == 1 and "model" not in parts:
        text = f"{parts.pop()}: {text}"
    return f"{text} backward" if backward else text


def _spoken(name: str) -> str:
    return {"scaled_dot_product_attention": "attention", "truediv": "div"}.get(
        name, name.replace("_", " ")
    )


def locations(group: Grouped) -> tuple[Location, ...]:
    """The user's lines of both sides, distinct, in file order."""
    found: dict[tuple[str, int], Location] = {}
    for operation in group.operations:
        if operation.location is not None:
            found.setdefault((operation.location.file, operation.location.line), operation.location)
    for placed in group.steps:
        for place in placed.computes.locations:
            found.setdefault((place.file, place.line), place)
    return tuple(found[key] for key in sorted(found))
