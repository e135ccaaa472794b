"""Inductor's fusion asks the gate: a user or an override file can decide a pair differently.

A pair is `inductor/GRAPH/fuse/A+B`, by the nodes that stand for it (fusion_names.py). A veto keeps
apart all groups that contain the operations of A and B, in all rounds, on every path. Operations
that lowering put into one scheduler node are no pair: an override that names them is refused.
Forcing a pair repeats Inductor's own test without its heuristics (forced_fusion.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from tcw.compiler.control.gate import Gate
from tcw.compiler.inductor.fusion_attempts import Attempt, explain_attempt
from tcw.compiler.inductor.fusion_rules import FORBIDDEN, why_forbidden
from tcw.compiler.inductor.loop_bodies import NodeLoops, indented, loops_of, renamed, unflattened
from tcw.compiler.inductor.lowered_graphs import Lowering
from tcw.compiler.protocol.decision import (
    APART,
    FUSE,
    INDUCTOR,
    Decision,
    Detail,
    Ruling,
    engine_of,
    refusal,
    split_id,
)
from tcw.compiler.trace.byte_counts import bytes_text
from tcw.compiler.trace.records import LoopLine

Retest = Callable[[], Attempt]
"""Repeats Inductor's test with its heuristics switched off."""


@dataclass(frozen=True, slots=True)
class Override:
    """One override of this graph, its two sides as sets of initial scheduler nodes."""

    id: str
    choice: str
    names: tuple[str, str]
    first: frozenset[str]
    second: frozenset[str]

    def between(self, one: set[str], two: set[str]) -> bool:
        """Whether it concerns these two groups."""
        return not (self.first.isdisjoint(one) or self.second.isdisjoint(two)) or not (
            self.first.isdisjoint(two) or self.second.isdisjoint(one)
        )

    def pairs(self, nodes: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """The pairs of groups among `nodes` that contain the two sides, in schedule order."""
        mine = self.first | self.second
        holding = [(node, its) for node in nodes if (its := _operations(node)) & mine]
        for at, (one, its) in enumerate(holding):
            for two, others in holding[at + 1 :]:
                if self.between(its, others):
                    yield one, two

    def within(self, nest: set[str]) -> bool:
        """Whether a nest contains nodes of both sides."""
        return not (self.first.isdisjoint(nest) or self.second.isdisjoint(nest))


class Overruling:
    """The gate's part in the fusion of one graph."""

    def __init__(self, lowering: Lowering, gate: Gate) -> None:
        self.lowering = lowering
        self.gate = gate
        self.overrides: list[Override] = []
        self._read: dict[str, str] = {}
        self._asked: set[tuple[str, bool, str]] = set()
        self._ended: dict[str, Ruling] = {}
        """The latest outcome of each override's decision; for a veto, the one that overruled a
        fusion."""
        self._attempts: dict[str, Attempt] = {}
        self._kept: dict[str, tuple[str, str]] = {}

    @property
    def idle(self) -> bool:
        """Whether there is nobody to ask and nothing to override."""
        return not self.gate.asks and not self.gate.overrides

    def consider(
        self, names: tuple[str, str], first: Any, second: Any, attempt: Attempt, retest: Retest
    ) -> bool:
        """The verdict on a pair after the gate's decision; the attempt holds Inductor's own."""
        self.gate.known(attempt.id)
        one, two = _operations(first), _operations(second)
        about = [override for override in self._current() if override.between(one, two)]
        about.sort(key=lambda override: (override.choice != APART, override.id != attempt.id))
        leading = about[0] if about else None
        id = leading.id if leading is not None else attempt.id
        rule, words, check = ("", "", "") if attempt.fused else explain_attempt(attempt)
        ask = self.gate.asks and leading is None and (id, attempt.fused, rule) not in self._asked
        if leading is None and not ask:
            return attempt.fused
        self._asked.add((id, attempt.fused, rule))
        named = leading.names if leading is not None else names
        against = (rule, words or check)
        decision, shown = self._decision(named, first, second, attempt, against, retest)
        decided = self.gate.answer(decision, ask)
        if shown:
            self._keep(decided)
        if decision.id in self.gate.overrides:
            self._note(decided, attempt)
        for other in about[1:]:
            self._beside(about[0], other, attempt)
        return self._carry_out(decided, attempt)

    def _carry_out(self, decided: Ruling, attempt: Attempt) -> bool:
        if decided.choice == FUSE and not attempt.fused:
            attempt.forced = explain_attempt(attempt)
            attempt.by = decided.decision.id
            attempt.fused = True
        elif decided.choice == APART and attempt.fused:
            attempt.by = decided.decision.id
            attempt.fused = False
        return attempt.fused

    def _beside(self, leading: Override, other: Override, attempt: Attempt) -> None:
        """A second override about the same two groups; the leading one keeps them apart."""
        decision = self._about(other.names, attempt.fused)
        if leading.choice != APART:
            return
        if other.choice == APART:
            self._note(Ruling(decision, APART, overridden=attempt.fused), attempt)
        else:
            refused = f"{leading.id} keeps two of their nodes apart"
            self._ended[other.id] = Ruling(decision, APART, refused=refused, wanted=FUSE)

    def _decision(
        self,
        names: tuple[str, str],
        first: Any,
        second: Any,
        attempt: Attempt,
        against: tuple[str, str],
        retest: Retest,
    ) -> tuple[Decision, list[bool]]:
        """The decision on a pair, and a list that is non-empty once the user was shown it."""
        rule, words = against
        forbidden = {}
        if not attempt.fused:
            if why_forbidden(rule):
                forbidden[FUSE] = (rule, words or why_forbidden(rule))
            else:
                again = retest()
                if not again.fused:
                    found, said, check = explain_attempt(again)
                    forbidden[FUSE] = (found, said or check or why_forbidden(found))
        else:
            rule, words = self._for(attempt)
        shown: list[bool] = []

        def detail() -> Any:
            shown.append(True)
            return detail_of(first, second, self.lowering)

        decision = self._about(
            names,
            attempt.fused,
            rule=rule,
            reason=words,
            numbers=attempt.numbers,
            forbidden=forbidden,
            detail=detail,
            between=tuple(attempt.between),
        )
        return decision, shown

    def _about(self, names: tuple[str, ...], fused: bool, **more: Any) -> Decision:
        """A decision on two nodes of this graph. `fused`: what Inductor itself does."""
        return Decision(
            graph=self.lowering.base,
            kind=FUSE,
            names=names,
            default=FUSE if fused else APART,
            choices=(FUSE, APART),
            engine=INDUCTOR,
            **more,
        )

    def _for(self, attempt: Attempt) -> tuple[str, str]:
        shared = f"; {bytes_text(attempt.shared)} are touched by both" if attempt.shared else ""
        if attempt.vertical:
            return "vertical", f"{attempt.second} comes after {attempt.first}{shared}"
        return "horizontal", f"neither needs the other{shared}"

    def _note(self, decided: Ruling, attempt: Attempt) -> None:
        id = decided.decision.id
        before = self._ended.get(id)
        if before is None or not before.overridden or decided.choice == FUSE:
            self._ended[id] = decided
        self._attempts[id] = attempt

    def forced(self) -> list[Override]:
        """Overrides whose pairs must be tested even if Inductor would not consider them."""
        return [override for override in self._current() if override.choice == FUSE]

    def finish(self, nests: list[set[str]]) -> None:
        """Record the outcome of each of this graph's overrides; the loop nests are final."""
        for id, choice in self.gate.chosen(self.lowering.base, FUSE, INDUCTOR).items():
            id = f"{INDUCTOR}/{self.lowering.base}/{FUSE}/{id}"
            override = next((o for o in self._current() if o.id == id), None)
            if override is not None:
                self._keep(self._end(override, any(override.within(nest) for nest in nests)))
            else:
                self._inlined(id, choice)

    def _end(self, override: Override, together: bool) -> Ruling:
        ruling = self._ended.get(override.id)
        carried_out = FUSE if together else APART
        if ruling is None:
            decision = self._about(override.names, together)
            wrong = refusal(decision, override.choice)
            if not wrong and override.choice != carried_out:
                wrong = "Inductor never considered the pair"
        elif ruling.choice == carried_out:
            return ruling
        else:
            decision = ruling.decision
            attempt = self._attempts.get(override.id)
            if override.choice == APART:
                wrong = "Inductor put both into one loop nest"
            elif attempt is not None and attempt.cycle:
                wrong = f"rule cycle: {FORBIDDEN['cycle']}"
            elif carried_out == override.choice:
                wrong = ""
            else:
                wrong = ruling.refused or "other fusions came first"
        wanted = override.choice if wrong else ""
        return Ruling(decision, carried_out, refused=wrong, wanted=wanted)

    def _inlined(self, id: str, choice: str) -> None:
        """Refuse an override that names two operations of one scheduler node."""
        names = split_id(id)[2]
        for operation, origins in self.lowering.operations.items():
            if len(names) == 2 and set(names) <= set(origins):
                why = f"{' and '.join(names)} are both in {operation}: {FORBIDDEN['inlined']}"
                forbidden = {APART: ("inlined", why)}
                decision = self._about(names, True, rule="inlined", reason=why, forbidden=forbidden)
                self._keep(self.gate.answer(decision, ask=False))
                return

    def _keep(self, decided: Ruling) -> None:
        state = (decided.choice, decided.refused)
        if self._kept.get(decided.decision.id) != state:
            self._kept[decided.decision.id] = state
            self.gate.keep(decided)

    def _current(self) -> list[Override]:
        """The overrides of this graph; the user may have added some since."""
        if self._read != self.gate.overrides:
            self._read = dict(self.gate.overrides)
            self.overrides = list(self._resolved())
        return self.overrides

    def _resolved(self) -> Iterator[Override]:
        exact = {name: operation for operation, name in self.lowering.names.items()}
        for id, choice in self._read.items():
            graph, kind, names = split_id(id)
            if engine_of(id) != INDUCTOR or (graph, kind) != (self.lowering.base, FUSE):
                continue
            if len(names) != 2:
                continue
            left, right = names
            first, second = self._holders(left, exact), self._holders(right, exact)
            both = first & second
            first = (first - both) | ({exact[left]} if left in exact else set())
            second = (second - both) | ({exact[right]} if right in exact else set())
            first -= second & {exact.get(right)}
            second -= first & {exact.get(left)}
            if first and second:
                yield Override(id, choice, (left, right), frozenset(first), frozenset(second))

    def _holders(self, name: str, exact: dict[str, str]) -> set[str]:
        """The scheduler nodes that compute the node with this name."""
        items = {
            operation for operation, origins in self.lowering.operations.items() if name in origins
        }
        if name in exact:
            items.add(exact[name])
        return items


def _operations(node: Any) -> set[str]:
    return {member.get_name() for member in node.get_nodes()}


def detail_of(first: Any, second: Any, lowering: Lowering) -> Detail:
    """Details of two groups whose fusion Inductor considers."""
    members = [*first.get_nodes(), *second.get_nodes()]
    origins = {
        origin for node in members for origin in lowering.operations.get(node.get_name(), ())
    }
    in_order = [node.name for node in lowering.positions if node.name in origins]
    bodies = [node._body for node in members if hasattr(getattr(node, "_body", None), "root_block")]
    nests = [loops_of(body) for body in bodies]
    on_cpu = str(first.get_device() or "cpu").startswith("cpu")
    return Detail(
        first=tuple(node.get_name() for node in first.get_nodes()),
        second=tuple(node.get_name() for node in second.get_nodes()),
        origins=tuple(in_order),
        nest=sketch(nests) if len(nests) == len(members) else (),
        sketched=True,
        means="two loop nests, which may still share one C++ function"
        if on_cpu
        else "two Triton kernels",
    )


def sketch(nests: Sequence[NodeLoops]) -> tuple[LoopLine, ...]:
    """Several nests as one: their common leading loops, then each nest's own.

    A nest that covers the same elements in one flat loop is written with the others' loops; its
    index becomes the corresponding sum.
    """
    if not nests:
        return ()
    deepest = max((nest.heads for nest in nests), key=len)
    nests = [unflattened(nest, deepest) for nest in nests]
    sizes = [[(head.reduced, head.size) for head in nest.heads] for nest in nests]
    levels = zip(*sizes, strict=False)
    common = len(list(takewhile(lambda at: len(set(at)) == 1 and not at[0][0], levels)))
    shared = nests[0].heads[:common]
    lines = list(shared)
    for nest in nests:
        names = {own.variable: head.variable for own, head in zip(nest.heads, shared, strict=False)}
        lines += nest.heads[common:]
        lines += indented(renamed(nest.body, names), len(nest.heads))
    return tuple(lines)
