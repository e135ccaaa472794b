"""Passes: how often a row is traversed, what each pass computes, and what it keeps for later ones.

A main reduction is complete after the pass that computes it; values that depend on it are computed
in a later pass. A later pass recomputes a cheap value, reloads one that was stored anyway, and
takes a heavy one (exp, erf, tanh, a gather, a scan) from a buffer as long as the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tcw.compiler.codegen.choices import NestChooser
from tcw.compiler.codegen.cpp.nests.questions import AGAIN, BEFORE, KEEP, RELOAD, kept
from tcw.compiler.codegen.nests.facts import Facts, estimate, overwrites
from tcw.compiler.loops.dtypes import BYTES, REDUCED
from tcw.compiler.loops.expressions import Address, Expression, Local, Op, Read
from tcw.compiler.loops.nest import (
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    expressions,
    reads_in,
)

HEAVY = 8
"""Cost above which recomputing a value is slower than a row buffer."""
INVARIANT = 3
"""The same for a value that would be recomputed in each step of a loop that it does not depend on.
"""
MOST_STREAMS = 8
"""Maximum number of sources and results that one loop follows."""
SHORTEST = 1024
"""Minimum number of bytes of a row that justify a separate loop."""


@dataclass(slots=True)
class Pass:
    """One traversal of some of a row's axes."""

    stage: int
    axes: frozenset[int]
    effects: list[Statement] = field(default_factory=list)
    """Reductions, scans and writes."""
    keeps: list[str] = field(default_factory=list)
    """Values that the pass leaves in row buffers."""
    backwards: frozenset[int] = frozenset()
    """Axes that the pass traverses from the end."""

    def order(self) -> tuple[int, int]:
        return self.stage, len(self.axes)


class Passes:
    """The passes of one nest, in order."""

    def __init__(
        self,
        facts: Facts,
        inner: Iterable[int],
        outer: Iterable[int],
        shared: frozenset[str],
        *,
        prologue: bool = True,
        lane: int | None = None,
        choose: NestChooser | None = None,
    ) -> None:
        """`lane`: the lane axis, unless tiles are transposed in the passes."""
        self.facts = facts
        self.choose = choose
        self.inner = frozenset(inner)
        """The axes of a row, including the lane axis."""
        self.outer = frozenset(outer)
        self.prologue = prologue
        """Whether values that are equal for all rows may be computed before them."""
        self.walks: list[Pass] = []
        self.kept: set[str] = set()
        self.reload: dict[str, Read] = {}
        """Values that a later pass reads back from where they were stored."""
        self.before: list[Pass] = []
        """Passes before all rows, for values that are equal for each."""
        self._stage: dict[str, int] = {}
        self._needed: dict[int, set[str]] = {}
        """Cached results of `needs`."""
        self._collect()
        self._delay(shared)
        if lane is not None and not set(facts.nest.reads()) & {*facts.nest.writes(), *shared}:
            self._part(lane)
        self._keep()

    def _collect(self) -> None:
        direction: dict[tuple[int, int], bool] = {}
        found: dict[tuple[int, frozenset[int]], Pass] = {}
        for statement in self.facts.nest.statements:
            stage = max((self._after(name) for name in self.facts.locals_in(statement)), default=0)
            if isinstance(statement, ScanAlong):
                while direction.get((stage, statement.axis), statement.reverse) != (
                    statement.reverse
                ):
                    stage += 1
                direction[stage, statement.axis] = statement.reverse
            if not isinstance(statement, Write):
                self._stage[statement.name] = stage
            if isinstance(statement, Let):
                continue
            axes = self.facts.domain(statement) & self.inner
            key = (stage, axes)
            if key not in found:
                found[key] = Pass(stage, axes)
                self.walks.append(found[key])
            found[key].effects.append(statement)
        for walk in self.walks:
            walk.backwards = frozenset(
                axis
                for (stage, axis), reverse in direction.items()
                if reverse and stage == walk.stage and axis in walk.axes
            )
        self.walks.sort(key=Pass.order)

    def _after(self, name: str) -> int:
        """The first stage in which a value can be used."""
        main = self.facts.is_main(self.facts.named[name])
        return self._stage[name] + (1 if main else 0)

    def _delay(self, shared: frozenset[str]) -> None:
        """Move each write that may overwrite data for a later pass after that pass's read."""
        read = set(self.facts.nest.reads())
        for place, walk in enumerate(list(self.walks)):
            for write in list(walk.effects):
                if not isinstance(write, Write):
                    continue
                overwritten = overwrites(write, shared) & read
                later = [
                    other for other in self.walks[place + 1 :] if overwritten & self._reads(other)
                ]
                if overwritten and later:
                    self._move(write, walk, later[-1])

    def _part(self, lane: int) -> None:
        """Divide passes whose writes have nothing in common."""
        for walk in [walk for walk in self.walks if lane in walk.axes]:
            first, *others = streams_apart(self.facts, walk.effects, lane)
            place = self.walks.index(walk) + 1
            walk.effects = first
            self.walks[place:place] = [
                Pass(walk.stage, walk.axes, effects, backwards=walk.backwards) for effects in others
            ]
        self._needed.clear()

    def _move(self, write: Write, walk: Pass, behind: Pass) -> None:
        self._needed.clear()
        walk.effects.remove(write)
        place = self.walks.index(behind)
        nest_order = {id(s): place for place, s in enumerate(self.facts.nest.statements)}
        for other in self.walks[place:]:
            if other.axes == walk.axes:
                other.effects.append(write)
                # memory that is overwritten is read for the last time before the write, in the
                # nest's order
                other.effects.sort(key=lambda effect: nest_order[id(effect)])
                return
        self.walks.insert(place + 1, Pass(behind.stage, walk.axes, [write]))

    def _reads(self, walk: Pass) -> set[str]:
        needed = (self.facts.named[name] for name in self.needs(walk))
        return {read.buffer for read in reads_in((*walk.effects, *needed))}

    def needs(self, walk: Pass) -> set[str]:
        """Names of the values that a pass computes."""
        known = self._needed.get(id(walk))
        if known is None:
            known = self._needed[id(walk)] = self._find_needs(walk)
        return known

    def _find_needs(self, walk: Pass) -> set[str]:
        found: set[str] = set()
        pending = [name for effect in walk.effects for name in self.facts.locals_in(effect)]
        pending += walk.keeps
        held = self.kept | set(self.reload)
        while pending:
            name = pending.pop()
            statement = self.facts.named[name]
            if name in found or isinstance(statement, Reduction):
                continue
            own = name in walk.keeps or statement in walk.effects
            if name in held and not own and not self._stores(walk, name):
                continue
            found.add(name)
            if not isinstance(statement, ScanAlong) or own:
                pending.extend(self.facts.locals_in(statement))
        return found

    def _changed(self, name: str) -> None:
        """Invalidate cached needs: from now on the value is kept or reloaded."""
        for key in [key for key, needed in self._needed.items() if name in needed]:
            del self._needed[key]

    def _stores(self, walk: Pass, name: str) -> bool:
        read = self.reload.get(name)
        return read is not None and any(
            isinstance(effect, Write) and effect.buffer == read.buffer for effect in walk.effects
        )

    def _keep(self) -> None:
        """Decide for each value, last to first, whether later passes recompute it."""
        for name in reversed(list(self.facts.named)):
            statement = self.facts.named[name]
            if isinstance(statement, Reduction):
                continue
            axes = self.facts.axes(Local(name, statement.dtype))
            own = axes & self.inner
            if not own:
                continue
            users = [walk for walk in self.walks if name in self.needs(walk)]
            wide = [walk for walk in users if walk.axes > own]
            weight = self.facts.weight(name)
            if isinstance(statement, ScanAlong):
                own_walk = next(walk for walk in self.walks if statement in walk.effects)
                if any(walk is not own_walk for walk in users):
                    self._keep_in(name, own_walk)
                continue
            asked = self.choose is not None
            before = bool(users) and (weight > INVARIANT or asked) and self._invariant(name, axes)
            stored = self._stored(name, users[0]) if len(users) > 1 else None
            if weight > INVARIANT and before:
                how = BEFORE
            elif wide and weight > INVARIANT:
                how = KEEP
            elif stored is not None:
                how = RELOAD if weight > 1 else AGAIN
            else:
                how = KEEP if len(users) > 1 and weight > HEAVY else AGAIN
            if self.choose is not None:
                again = len(users) > 1 or wide
                may = {AGAIN: True, KEEP: again, RELOAD: stored, BEFORE: before}
                legal = [one for one, possible in may.items() if possible]
                how = kept(self.choose, name, how, legal, weight, len(users))
            if how == BEFORE:
                self._keep_before(name, own)
            elif how == KEEP and wide:
                self._keep_in(name, self._pass(self._stage[name], own))
            elif how == KEEP:
                self._keep_in(name, users[0])
            elif how == RELOAD and stored is not None:
                self.reload[name] = stored
                self._changed(name)

    def _invariant(self, name: str, axes: frozenset[int]) -> bool:
        """Whether the value is equal for all rows and depends on nothing that a row computes."""
        if not self.prologue or not self.outer or axes & self.outer:
            return False
        value = self.facts.named[name]
        return all(isinstance(s, Let) for s in [value, *self.facts.behind([value], lambda _: True)])

    def _keep_in(self, name: str, walk: Pass) -> None:
        self.kept.add(name)
        walk.keeps.insert(0, name)
        self._changed(name)
        self._needed.pop(id(walk), None)

    def _keep_before(self, name: str, own: frozenset[int]) -> None:
        walk = next((walk for walk in self.before if walk.axes == own), None)
        if walk is None:
            walk = Pass(0, own)
            self.before.append(walk)
        self._keep_in(name, walk)

    def _pass(self, stage: int, axes: frozenset[int]) -> Pass:
        for walk in self.walks:
            if walk.stage == stage and walk.axes == axes:
                return walk
        walk = Pass(stage, axes)
        self.walks.append(walk)
        self.walks.sort(key=Pass.order)
        return walk

    def _stored(self, name: str, walk: Pass) -> Read | None:
        """Where a pass stores a value unchanged, or None."""
        for effect in walk.effects:
            if (
                isinstance(effect, Write)
                and effect.mode == "set"
                and isinstance(effect.expression, Local)
                and effect.expression.name == name
                and effect.dtype == effect.expression.dtype
                and effect.dtype not in REDUCED
                and not effect.terms
                and not effect.address.then
            ):
                return Read(effect.buffer, effect.address, effect.dtype)
        return None


def streams_apart(facts: Facts, effects: Sequence[Statement], lane: int) -> list[list[Statement]]:
    """The effects in groups that share no value, in order; one group if they are few.

    A core follows a few streams through memory at a time. In loops of their own, the pieces of a
    concatenation are each copied by themselves.
    """
    writes = [effect for effect in effects if isinstance(effect, Write)]
    together = [list(effects)]
    if len(writes) != len(effects) or not all(_is_stream(facts, write, lane) for write in writes):
        return together
    used = [frozenset(_used(write)) for write in writes]
    if len(frozenset().union(*used)) + len(writes) <= MOST_STREAMS:
        return together
    groups: list[tuple[list[Statement], set[object]]] = []
    for write, own in zip(writes, used, strict=True):
        shared = [group for group in groups if group[1] & own]
        if not shared:
            groups.append(([write], set(own)))
            continue
        first = shared[0]
        for other in shared[1:]:
            first[0].extend(other[0])
            first[1].update(other[1])
            groups.remove(other)
        first[0].append(write)
        first[1].update(own)
    return [group for group, _ in groups]


def _is_stream(facts: Facts, write: Write, lane: int) -> bool:
    """Whether a write moves a long run of memory, from runs of memory."""
    size = estimate(facts.nest.axes[lane].size) * BYTES[write.dtype]
    if size < SHORTEST or write.mode != "set" or write.terms:
        return False
    addresses = [part.address for part in expressions(write) if isinstance(part, Read)]
    return all(_runs(address, lane) for address in (write.address, *addresses))


def _runs(address: Address, lane: int) -> bool:
    return address.strides[lane] in (0, 1) and not address.then


def _used(write: Write) -> set[object]:
    return {part for part in expressions(write) if isinstance(part, (Read, Local))}


def with_invariants(nest: Nest) -> Nest:
    """The nest with separate `Let`s for heavy parts with fewer axes than their statement.

    What varies along the lanes but not over rows (1 / sqrt(variance of a channel)) does not fit in
    a register; as a value of its own it is computed once and held in a row buffer.
    """
    facts = Facts(nest)
    made: dict[Expression, Local] = {}
    statements: list[Statement] = []
    taken = set(facts.named)
    for statement in nest.statements:
        whole = facts.axes(statement.expression)

        def visit(
            part: Expression, whole: frozenset[int] = whole, statement: Statement = statement
        ) -> Expression:
            if not isinstance(part, Op):
                return part
            axes = facts.axes(part)
            if axes and axes < whole and facts.expression_weight(part) > INVARIANT:
                if part not in made:
                    name = f"{part.name}_invariant"
                    while name in taken:
                        name += "_"
                    taken.add(name)
                    made[part] = Local(name, part.dtype)
                    order = tuple(sorted(axes))
                    statements.append(Let(name, part.dtype, part, order, statement.origins))
                return made[part]
            args = tuple(visit(argument) for argument in part.args)
            if all(new is old for new, old in zip(args, part.args, strict=True)):
                return part
            return replace(part, args=args)

        expression = visit(statement.expression)
        if expression is not statement.expression:
            statement = replace(statement, expression=expression)
        statements.append(statement)
    return replace(nest, statements=tuple(statements)) if made else nest
