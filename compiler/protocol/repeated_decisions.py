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
class _Told:
    """What a listener has been told about a decision."""

    last: str
    """The engine's own answer when last told."""
    answers: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)


class Weighed:
    """What each listener has been told about each decision."""

    def __init__(self) -> None:
        self._rounds: dict[str, int] = {}
        """Graph -> number of finished fusion rounds."""
        self._told: dict[tuple[Hashable, str], _Told] = {}

    def learn(self, record: Record) -> None:
        if isinstance(record, FusionRound):
            self._rounds[base_graph(record.graph)] = record.round

    def tell(self, decision: Decision, who: Hashable) -> str | None:
        """Tell `who`, a breakpoint or any other listener, about a decision. Returns None if they
        already know it, "" the first time, else what is new."""
        key = who, decision.id
        told = self._told.get(key)
        known = told is not None
        told = told or _Told(decision.default)
        opened = [choice for choice in decision.legal() if choice not in told.open]
        answers_anew = decision.default not in told.answers
        before = told.last
        told.last = decision.default
        told.answers.add(decision.default)
        told.open.update(opened)
        self._told[key] = told
        if not known:
            return ""
        if not opened and not answers_anew:
            return None
        again = f"weighed again in round {self._rounds.get(base_graph(decision.graph), 0) + 1}"
        if decision.default != before:
            rule = f", rule {decision.rule}" if decision.default == APART and decision.rule else ""
            return f"{again}: the engine now says {decision.default}{rule}"
        return f"{again}: {' and '.join(opened)} can now be chosen"
