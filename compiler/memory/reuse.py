"""Which values reuse the memory of values that die; each reuse is a decision.

A value that leaves its segment may reuse the memory of an outside value that the segment uses last.
A temporary may be written over another temporary, in place. All other reuse happens in the arena
(`arena.py`). Memory that may be shared is never reused: a graph's inputs (unless the caller donated
them), outputs, and whatever a call may alias.
"""

from __future__ import annotations

from collections.abc import Collection

from tcw.compiler.control.gate import Gate
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Local, Read, ReadIndexed
from tcw.compiler.loops.graph import DRAWS, Input, Map, Reduce, Result, Scan, Store
from tcw.compiler.loops.layouts import dense_order
from tcw.compiler.loops.nest import (
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    expressions,
    runs_over,
)
from tcw.compiler.loops.sizes import Size
from tcw.compiler.memory.accesses import Values
from tcw.compiler.memory.plan import TakesOver
from tcw.compiler.memory.segments import Timeline, home
from tcw.compiler.protocol.decision import Decision, Detail

KIND = "reuse"
REUSE = "reuse"
OWN = "own"
MEANS = "own: separate memory; reuse: the memory of a value that is dead by then"

FRESH = frozenset(
    f"{name}.default"
    for name in (
        "aten.mm",
        "aten.addmm",
        "aten.bmm",
        "aten.baddbmm",
        "aten.convolution",
        "aten.convolution_backward",
        "aten.max_pool2d_with_indices",
        "aten._scaled_dot_product_flash_attention_for_cpu",
        "aten._scaled_dot_product_flash_attention_for_cpu_backward",
        "mkldnn._linear_pointwise",
    )
)
"""Operations that are known to return memory that nothing else holds."""
Refusal = tuple[str, str]
"""The name of the rule that forbids it, and the reason."""


class Reuse:
    """Chooses the memory that each value reuses. Call in the order of the values' first writes."""

    def __init__(
        self,
        timeline: Timeline,
        values: Values,
        temporaries: Collection[str],
        donated: Collection[str],
        gate: Gate,
    ) -> None:
        self.timeline = timeline
        self.values = values
        self.temporaries = frozenset(temporaries)
        """Values in the arena of their segment."""
        self.donated = frozenset(donated)
        self.gate = gate
        self.taken: dict[str, TakesOver] = {}
        """Value -> the memory that it reuses."""
        self._given: set[str] = set()
        self._dying = self._by_death()

    def _by_death(self) -> dict[tuple[int, Size], list[str]]:
        """(step, bytes) -> the values whose memory is free after it, in order of their deaths."""
        found: dict[tuple[int, Size], list[str]] = {}
        lives = sorted(self.timeline.values.items(), key=lambda item: item[1].last)
        for name, _ in lives:
            if self._may_give(name):
                key = self.timeline.last_step(name), self.values.bytes(name)
                found.setdefault(key, []).append(name)
        return found

    def _may_give(self, name: str) -> bool:
        values = self.values
        if name in values.outputs or values.aliased(name):
            return False
        if name in values.inputs:
            form = values.inputs[name]
            given = name in self.donated and not form.constant and name not in values.written
            return given and form.dtype in BYTES and _is_dense(form)
        if name in values.results:
            call, result = values.results[name]
            fresh = call.target in FRESH or call.target.startswith(DRAWS)
            return fresh and result.dtype in BYTES and _is_dense(result)
        return True

    def choose(self, value: str, nest: Nest) -> None:
        """Decide about a value at the nest that first writes it."""
        life = self.timeline.values[value]
        step = self.timeline.step[life.first]
        temporary = value in self.temporaries
        refused: tuple[str, Refusal] | None = None
        best: tuple[int, str] | None = None
        for donor in self._dying.get((step, self.values.bytes(value)), ()):
            born, dead = self.timeline.values[donor].first, self.timeline.values[donor].last
            written_later = born >= life.first and donor not in self.values.inputs
            if donor in self._given or written_later or dead > life.first:
                continue
            inside = home(donor, self.taken) in self.temporaries
            if (inside and not temporary) or self._made_here(donor, step):
                continue
            if dead < life.first:
                if not inside and (best is None or dead >= best[0]):
                    best = dead, donor
                continue
            no = refusal(nest, value, donor, self.values)
            if no is None:
                best = dead, donor
                break
            refused = refused or (donor, no)
        if best is not None:
            self._take(value, best[1], in_place=best[0] == life.first)
        elif refused is not None:
            donor, (rule, reason) = refused
            self._decide(
                value,
                OWN,
                "no-donor",
                f"it cannot be written over {donor}: {reason}",
                (rule, reason),
            )

    def _made_here(self, donor: str, step: int) -> bool:
        """Whether the donor is a tensor returned by the very segment in which it dies."""
        if donor in self.temporaries or donor in self.values.inputs:
            return False
        return self.timeline.step[self.timeline.values[donor].first] == step

    def _take(self, value: str, donor: str, *, in_place: bool) -> None:
        size = self.values.bytes(value)
        reason = (
            f"{donor} is read at the same addresses for the last time"
            if in_place
            else f"{donor} is dead by then"
        )
        reason = f"{reason}; both are {size if not isinstance(size, int) else f'{size:,}'} bytes"
        rule = "in-place" if in_place else "takes-over"
        if self._decide(value, REUSE, rule, reason, None) == REUSE:
            self.taken[value] = TakesOver(donor, in_place)
            self._given.add(donor)

    def _decide(
        self, value: str, default: str, rule: str, reason: str, forbidden: Refusal | None
    ) -> str:
        return decide(self.gate, self.values, value, default, rule, reason, forbidden)


def decide(
    gate: Gate,
    values: Values,
    value: str,
    default: str,
    rule: str,
    reason: str,
    forbidden: Refusal | None = None,
) -> str:
    """`reuse` or `own` for one value: the default, unless overridden."""
    size = values.number(values.bytes(value))

    def detail() -> Detail:
        return Detail(origins=_origins(values, value), means=MEANS)

    decision = Decision(
        graph=values.program.graph.name,
        kind=KIND,
        names=(value,),
        default=default,
        choices=(REUSE, OWN),
        rule=rule,
        reason=reason,
        numbers={} if size is None else {"bytes": size},
        forbidden={} if forbidden is None else {REUSE: forbidden},
        detail=detail if gate.asks else None,
    )
    return gate.decide(decision)


def _origins(values: Values, value: str) -> tuple[str, ...]:
    """The lowered graph's nodes that compute a value or store into it."""
    made = [
        node
        for node in values.program.graph.nodes
        if isinstance(node, (Map, Reduce, Scan, Store))
        and value == (node.buffer if isinstance(node, Store) else node.name)
    ]
    return tuple(dict.fromkeys(origin for node in made for origin in node.origins))


def _is_dense(tensor: Input | Result) -> bool:
    return dense_order(tensor.shape, tensor.strides) is not None


def refusal(nest: Nest, written: str, read: str, values: Values) -> Refusal | None:
    """Why a nest may not write `written` over the memory of `read`; None if it may.

    Each element must be read for the last time before it is overwritten. A nest runs as one loop
    over the row per reduction to complete, and a later loop may recompute a value from memory. So
    everything computed from the dying value must be in the loop of the write or an earlier one. In
    each loop, code generation updates the reductions before it stores, and stores in the nest's
    order.
    """
    key = id(nest), written, read
    if key not in values.refusals:
        values.refusals[key] = _refusal(nest, written, read, values)
    return values.refusals[key]


def _refusal(nest: Nest, written: str, read: str, values: Values) -> Refusal | None:
    if values.dtype(written) != values.dtype(read):
        return "dtype", f"{read} is {values.dtype(read)}, {written} {values.dtype(written)}"
    if read in nest.writes():
        return "written", f"{read} is written here as well"
    if any(isinstance(statement, ScanAlong) for statement in nest.statements):
        return "scan", "a scan reads elements that were written before"
    writes = [s for s in nest.statements if isinstance(s, Write) and s.buffer == written]
    write = writes[0]
    if len(writes) > 1 or write.terms or write.mode != "set" or write.ordered:
        return "scattered", f"{written} is written piece by piece or at computed indices"
    if write.address.then or not _covers(nest, write):
        return "addresses", f"{written} is not written once for each position"
    users = _users(nest, read)
    for statement in users:
        for part in expressions(statement):
            if isinstance(part, ReadIndexed) and part.buffer == read:
                return "gathered", f"{read} is read at computed indices"
            if isinstance(part, Read) and part.buffer == read and part.address != write.address:
                return (
                    "addresses",
                    f"{read} is not read at the addresses at which {written} is written",
                )
    return _later_use(nest, write, users, read)


def _covers(nest: Nest, write: Write) -> bool:
    """Whether the write's address varies along each of its axes, except those of size 1."""
    return all(write.address.strides[axis] != 0 or nest.axes[axis].size == 1 for axis in write.axes)


def _users(nest: Nest, read: str) -> list[Statement]:
    """Statements that read the memory, or a value computed from it at the same position."""
    statements: list[Statement] = []
    carried: set[str] = set()
    for statement in nest.statements:
        for part in expressions(statement):
            direct = isinstance(part, (Read, ReadIndexed)) and part.buffer == read
            if direct or (isinstance(part, Local) and part.name in carried):
                statements.append(statement)
                if isinstance(statement, Let):
                    carried.add(statement.name)
                break
    return statements


def _later_use(nest: Nest, write: Write, users: list[Statement], read: str) -> Refusal | None:
    loops = _loops(nest)
    order = {id(statement): place for place, statement in enumerate(nest.statements)}
    for statement in users:
        more = set(runs_over(statement)) - set(write.axes)
        if any(nest.axes[axis].size != 1 for axis in more):
            return "addresses", f"{read} is read more often than {write.buffer} is written"
        stored_later = isinstance(statement, Write) and order[id(statement)] > order[id(write)]
        if loops[id(statement)] > loops[id(write)] or stored_later:
            return "later-loop", f"{read} is needed after {write.buffer} is written"
    return None


def _loops(nest: Nest) -> dict[int, int]:
    """The index of the loop over a row in which each statement is first computed."""
    complete: dict[str, int] = {}
    loops: dict[int, int] = {}
    for statement in nest.statements:
        needed = [complete[p.name] for p in expressions(statement) if isinstance(p, Local)]
        loop = loops[id(statement)] = max(needed, default=0)
        if not isinstance(statement, Write):
            complete[statement.name] = loop + (
                isinstance(statement, Reduction) and bool(statement.over)
            )
    return loops
