"""Recurring decisions: Inductor weighs a pair in each round, and up to twice in one.

As long as the question is the same, that is one decision and one stop. It counts as new if the
engine's own answer has changed, or if a new choice has become legal. The stop then reports the
round and what is new.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tcw.compiler.protocol.decision import APART, Decision
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import FusionRound, Record


@dataclass(slots=True)
class _Met:
    """What a listener has met of a decision."""

    last: str
    """The engine's own answer when last met."""
    answers: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)


class RepeatedDecisions:
    """What each listener has met of each decision."""

    def __init__(self) -> None:
        self._rounds: dict[str, int] = {}
        """Graph -> number of finished fusion rounds."""
        self._met: dict[tuple[Hashable, str], _Met] = {}

    def learn(self, record: Record) -> None:
        if isinstance(record, FusionRound):
            self._rounds[base_graph(record.graph)] = record.round

    def news(self, decision: Decision, who: Hashable) -> str | None:
        """Tell `who`, a breakpoint or any other listener, about a decision. Returns None if they
        already know it, "" the first time, else what is new."""
        key = who, decision.id
        met = self._met.get(key)
        known = met is not None
        met = met or _Met(decision.default)
        opened = [choice for choice in decision.legal() if choice not in met.open]
        answers_anew = decision.default not in met.answers
        before = met.last
        met.last = decision.default
        met.answers.add(decision.default)
        met.open.update(opened)
        self._met[key] = met
        if not known:
            return ""
        if not opened and not answers_anew:
            return None
        again = f"weighed again in round {self._rounds.get(base_graph(decision.graph), 0) + 1}"
        if decision.default != before:
            rule = f", rule {decision.rule}" if decision.default == APART and decision.rule else ""
            return f"{again}: the engine now says {decision.default}{rule}"
        return f"{again}: {' and '.join(opened)} can now be chosen"
