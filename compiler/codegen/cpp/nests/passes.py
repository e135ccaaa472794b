"""Passes: how often a row is traversed, what each pass computes, and what it keeps for later ones.

A main reduction is complete after the pass that computes it; values that depend on it are computed
in a later pass. A later pass recomputes a cheap value, reloads one that was stored anyway, and
takes a heavy one (exp, erf, tanh, a gather, a scan) from a buffer as long as the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tcw.compiler.codegen.choices import NestChooser
from tcw.compiler.codegen.cpp.nests.questions import AGAIN, BEFORE, KEEP, RELOAD, kept
from tcw.compiler.codegen.cpp.nests.streams import apart
from tcw.compiler.codegen.nests.facts import Facts, overwrites
from tcw.compiler.loops.dtypes import REDUCED
from tcw.compiler.loops.expressions import Local, Read
from tcw.compiler.loops.nest import Let, Reduction, ScanAlong, Statement, Write, reads_in

HEAVY = 8
"""Cost above which recomputing a value is slower than a row buffer."""
INVARIANT = 3
"""The same for a value that would be recomputed in each step of a loop that it does not depend on.
"""


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
            first, *others = apart(self.facts, walk.effects, lane)
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
