"""Fusing by candidates: each pair is scored, decided by the gate, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.candidates import (
    Candidate,
    least_shared,
    pieces,
    siblings,
    twins,
    vertical,
)
from tcw.compiler.fusion.groups import Group
from tcw.compiler.fusion.if_fused import if_fused, if_it_were_legal, origins_of
from tcw.compiler.fusion.merge import Grouping, Merge
from tcw.compiler.fusion.pairs import Listener, Pair, PassKind
from tcw.compiler.fusion.rows import kept_size
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.protocol.decision import APART, FUSE, VETO, Decision, Detail, decision_id
from tcw.compiler.trace.byte_counts import bytes_text
from tcw.compiler.trace.records import FusionPair


@dataclass(slots=True)
class Decisions:
    """Considers candidates until nothing changes."""

    grouping: Grouping
    gate: Gate
    listener: Listener | None = None
    pairs: dict[str, Pair] = field(default_factory=dict)
    rounds: list[int] = field(default_factory=list)
    """How many groups each pass has left."""
    _merged: list[Pair] = field(default_factory=list)
    """The pairs fused in the current pass."""
    _seen: dict[tuple[int, int], tuple[int, int, int, int]] = field(default_factory=dict)

    def run(self) -> None:
        """Fuse producers with readers to a fixed point, then siblings, pieces and twins, once each.

        If one of the latter passes fuses something, producers with readers are reconsidered.
        """
        edges = vertical(self.grouping)
        self._to_end(edges)
        if self._pass("horizontal", siblings(self.grouping)):
            self._to_end(edges)
        if self._pass("pieces", pieces(self.grouping)):
            self._to_end(edges)
        if self._pass("twins", twins(self.grouping)):
            self._to_end(edges)
        self._joined()

    def _joined(self) -> None:
        """Record pairs that were refused by themselves, but share a nest through other pairs."""
        place, home = self.grouping.order.place, self.grouping.home
        for pair in list(self.pairs.values()):
            if not pair.fused and home[place[pair.first]] == home[place[pair.second]]:
                alone = f"by itself {pair.rule}: {pair.decision.reason}"
                reason = f"in one nest through others; {alone}"
                joined = replace(
                    pair.decision, default=FUSE, rule="joined", reason=reason, forbidden={}
                )
                number = len(self.rounds) + 1
                together = replace(pair, decision=joined, fused=True, round=number)
                self.gate.joined(joined, self._test(together))
                self._keep(together)
        if self._merged:
            self._end()

    def _keep(self, pair: Pair) -> None:
        self.pairs[pair.id] = pair
        if pair.fused:
            self._merged.append(pair)

    def _test(self, pair: Pair) -> Callable[[], FusionPair] | None:
        """What describes the test of a pair, if there is a listener."""
        return None if self.listener is None else partial(self.listener.tested, pair)

    def _end(self) -> None:
        self.rounds.append(len(self.grouping.groups))
        if self.listener is not None:
            self.listener.round(len(self.rounds), self.rounds[-1], self._merged)
        self._merged = []

    def _to_end(self, candidates: list[Candidate]) -> None:
        while self._pass("vertical", candidates):
            pass

    def _pass(self, kind: PassKind, candidates: list[Candidate]) -> int:
        fused = sum(self._consider(candidate, kind) for candidate in candidates)
        self._end()
        return fused

    def _consider(self, candidate: Candidate, kind: str) -> bool:
        grouping = self.grouping
        one, two = (
            grouping.groups[grouping.home[place]] for place in (candidate.first, candidate.second)
        )
        if one is two:
            return False
        key = (candidate.first, candidate.second)
        state = (one.id, one.changed, two.id, two.changed)
        if self._seen.get(key) == state:
            return False
        self._seen[key] = state
        if grouping.reach.reaches(two.id, one.id):
            one, two = two, one
        found = grouping.legal(one, two)
        against = found if isinstance(found, Refusal) else found.against
        if against is None and kind == "horizontal":
            least = least_shared(grouping, candidate)
            if candidate.shared is not None and candidate.shared < least:
                against = Refusal(
                    "too little",
                    f"they share {bytes_text(candidate.shared)}",
                    legal=True,
                    numbers={"least_shared_bytes": least},
                )
        if not self._decide(candidate, kind, one, two, found, against):
            return False
        assert isinstance(found, Merge)
        grouping.merge(one, two, found)
        return True

    def _decide(
        self,
        candidate: Candidate,
        kind: str,
        one: Group,
        two: Group,
        found: Merge | Refusal,
        against: Refusal | None,
    ) -> bool:
        nodes = self.grouping.order.nodes
        first, second = nodes[candidate.first].name, nodes[candidate.second].name
        id = decision_id(self.grouping.graph.name, FUSE, first, second)
        before = self.pairs.get(id)
        if against is not None:
            rule, reason = against.rule, against.reason
            if before is not None and (before.rule, before.decision.reason) == (rule, reason):
                return False
        else:
            rule, reason = self._for(candidate, kind)
        forbidden = {FUSE: (rule, reason)} if isinstance(found, Refusal) else {}
        grouping = self.grouping
        own = (grouping.groups[grouping.home[p]] for p in (candidate.first, candidate.second))
        if computed := _computed_in_both(first, second, *own):
            forbidden[APART] = "computed twice", computed
        held, rows = (None, None) if isinstance(found, Refusal) else self._room(found)
        weighed = {
            "saved_bytes": candidate.score,
            "shared_bytes": candidate.shared,
            "working_set": held,
            "parallelism": rows,
        }
        decision = Decision(
            self.grouping.graph.name,
            FUSE,
            (first, second),
            FUSE if against is None else APART,
            (FUSE, APART),
            rule,
            reason,
            {
                **{name: value for name, value in weighed.items() if value is not None},
                **(against.numbers if against is not None else {}),
            },
            forbidden,
            self._detail(one, two, found) if self.gate.asks else None,
            self._known(against.between) if against is not None else (),
        )
        first_group, second_group = (
            tuple(node.name for node in group.members) for group in (one, two)
        )
        number = len(self.rounds) + 1
        pair = Pair(
            replace(decision, detail=None),
            first_group,
            second_group,
            candidate.kind,
            against is None,
            number,
        )
        fused = self.gate.fuse(decision, one.names, two.names, self._test(pair))
        if not fused and against is None:
            rule, reason = VETO, f"{self.gate.veto(decision.graph, one.names, two.names) or id}"
        ended = replace(pair.decision, rule=rule, reason=reason)
        self._keep(replace(pair, decision=ended, fused=fused))
        return fused

    def _detail(self, one: Group, two: Group, found: Merge | Refusal) -> Callable[[], Detail]:
        """Both sides and the nest that they would become. Must be called before they are merged."""

        def detail() -> Detail:
            sketched = isinstance(found, Refusal)
            merged = (
                if_it_were_legal(self.grouping, one, two, found)
                if isinstance(found, Refusal)
                else if_fused(self.grouping, one, two, found)
            )
            return Detail(
                first=self._known([member.name for member in one.members]),
                second=self._known([member.name for member in two.members]),
                origins=origins_of((*one.members, *two.members)),
                if_fused=merged,
                sketched=sketched,
                means=f"two loop nests, each {self.grouping.weights.machine.apart}",
            )

        return detail

    def _known(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """The scheduler nodes that compute these."""
        return tuple(nodes) if self.listener is None else self.listener.known_as(nodes)

    def _for(self, candidate: Candidate, kind: str) -> tuple[str, str]:
        if kind == "vertical":
            return "saves bytes", f"{bytes_text(candidate.score)} stay in registers"
        if kind == "pieces":
            return "one buffer", "both write pieces of one buffer"
        if kind == "twins":
            return "same domain", "small loops over the same domain start once"
        return "shares bytes", f"{bytes_text(candidate.shared)} are read once for both"

    def _room(self, found: Merge) -> tuple[int, int]:
        """Bytes of accumulators that the common loop holds, and its parallel rows or elements."""
        weights, space = self.grouping.weights, found.space
        rows = space.size if space.mask is None else kept_size(space.mask)
        return weights.accumulators(space.riders), weights.number(rows)


def _computed_in_both(first: str, second: str, one: Group, two: Group) -> str:
    """Why two nodes of groups `one` and `two` can no longer be kept apart, or "": the nest of one
    also computes the other, since an index picks from it or a loop was split at its pieces."""
    if first in two.names:
        return f"the nest of {second} computes {first} as well: override that first"
    if second in one.names:
        return f"the nest of {first} computes {second} as well: override that first"
    return ""
