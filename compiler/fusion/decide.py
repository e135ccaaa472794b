"""Fusing by candidates: each pair is weighed, decided at the gate, and recorded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from compiler.control.decisions import APART, FUSE, Decision, Gate, decision_id
from compiler.fusion.candidates import Candidate, Kind, pieces, siblings, twins, vertical, worth
from compiler.fusion.groups import Group
from compiler.fusion.merge import Grouping, Merge
from compiler.fusion.rows import kept_size
from compiler.fusion.rules import Refusal

Step = Literal["vertical", "horizontal", "pieces", "twins"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair that was considered, as it was decided last."""

    id: str
    first: str
    second: str
    """The two nodes."""
    first_group: tuple[str, ...]
    second_group: tuple[str, ...]
    """The nodes that shared a nest with each of them by then."""
    kind: Kind
    fused: bool
    rule: str
    reason: str
    score: int
    """Bytes that it saves: written and read again, or read twice."""
    shared_bytes: int
    working_set: int
    """Bytes of accumulators that the common loop holds."""
    parallelism: int
    """Rows (or elements) that can run at once."""


@dataclass(frozen=True, slots=True)
class Round:
    """One pass over the candidates."""

    kind: Step
    candidates: int
    fused: int
    groups: int
    """How many are left."""


@dataclass(slots=True)
class Decisions:
    """Weighs candidates until nothing changes any more."""

    grouping: Grouping
    gate: Gate
    pairs: dict[str, Pair] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    _asked: dict[str, Decision] = field(default_factory=dict)
    """The last decision of each id."""
    _seen: dict[tuple[int, int], tuple[int, int, int, int]] = field(default_factory=dict)

    def run(self) -> None:
        """Producers with readers to the end, then siblings, pieces and twins, each once.

        Where one of the latter fused something, producers with readers are weighed again.
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
        """What was refused by itself, but came into one nest with others."""
        place, home = self.grouping.order.place, self.grouping.home
        for id, pair in self.pairs.items():
            if not pair.fused and home[place[pair.first]] == home[place[pair.second]]:
                reason = f"in one nest through others; by itself {pair.rule}: {pair.reason}"
                self.pairs[id] = replace(pair, fused=True, rule="joined", reason=reason)
                asked = self._asked[id]
                self.gate.joined(
                    replace(asked, default=FUSE, rule="joined", reason=reason, forbidden={})
                )

    def _to_end(self, candidates: list[Candidate]) -> None:
        while self._pass("vertical", candidates):
            pass

    def _pass(self, kind: Step, candidates: list[Candidate]) -> int:
        fused = sum(self._consider(candidate, kind) for candidate in candidates)
        self.rounds.append(Round(kind, len(candidates), fused, len(self.grouping.groups)))
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
        if against is None and kind == "horizontal" and not worth(grouping, candidate):
            against = Refusal("too little", f"they share {candidate.shared} bytes", legal=True)
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
        units = self.grouping.order.units
        first, second = units[candidate.first].name, units[candidate.second].name
        id = decision_id(self.grouping.graph.name, FUSE, first, second)
        before = self.pairs.get(id)
        if against is not None:
            if before is not None and (before.rule, before.reason) == (
                against.rule,
                against.reason,
            ):
                return False
            rule, reason = against.rule, against.reason
        else:
            rule, reason = self._for(candidate, kind)
        forbidden = {FUSE: (rule, reason)} if isinstance(found, Refusal) else {}
        held, rows = self._numbers(found)
        decision = Decision(
            self.grouping.graph.name,
            FUSE,
            (first, second),
            FUSE if against is None else APART,
            (FUSE, APART),
            rule,
            reason,
            {
                "saved_bytes": candidate.score,
                "shared_bytes": candidate.shared,
                "working_set": held,
                "parallelism": rows,
            },
            forbidden,
        )
        self._asked[id] = decision
        fused = self.gate.fuse(decision, one.names, two.names)
        if not fused and against is None:
            rule, reason = "veto", f"{self.gate.veto(decision.graph, one.names, two.names) or id}"
        self.pairs[id] = Pair(
            id,
            first,
            second,
            tuple(node.name for node in one.members),
            tuple(node.name for node in two.members),
            candidate.kind,
            fused,
            rule,
            reason,
            candidate.score,
            candidate.shared,
            held,
            rows,
        )
        return fused

    def _for(self, candidate: Candidate, kind: str) -> tuple[str, str]:
        if kind == "vertical":
            return "saves bytes", f"{candidate.score} bytes stay in registers"
        if kind == "pieces":
            return "one buffer", "both write pieces of one buffer"
        if kind == "twins":
            return "same domain", "small loops over the same domain start once"
        return "shares bytes", f"{candidate.shared} bytes are read once for both"

    def _numbers(self, found: Merge | Refusal) -> tuple[int, int]:
        if isinstance(found, Refusal):
            return 0, 0
        weights, space = self.grouping.weights, found.space
        rows = space.size if space.mask is None else kept_size(space.mask)
        return weights.accumulators(space.riders), weights.number(rows)
