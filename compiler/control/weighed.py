"""Recurring decisions: Inductor weighs a pair in each round, and up to twice in one.

As long as the question is the same, that is one decision and one stop. It counts as new if the
engine's own answer has changed, or if a new choice has become legal. The stop then reports the
round and what is new.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.control.decisions import APART
from compiler.control.matters import Question
from compiler.trace.records import FusionRound, Record


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
            self._rounds[_graph(record.graph)] = record.round

    def tell(self, question: Question, who: Hashable) -> str | None:
        """Tell `who`, a breakpoint or any other listener, about a decision. Returns None if they
        already know it, "" the first time, else what is new."""
        key = who, question.id
        told = self._told.get(key)
        known = told is not None
        told = told or _Told(question.default)
        opened = [choice for choice in _open(question) if choice not in told.open]
        answers_anew = question.default not in told.answers
        before = told.last
        told.last = question.default
        told.answers.add(question.default)
        told.open.update(opened)
        self._told[key] = told
        if not known:
            return ""
        if not opened and not answers_anew:
            return None
        again = f"weighed again in round {self._rounds.get(_graph(question.graph), 0) + 1}"
        if question.default != before:
            rule = f", rule {question.rule}" if question.default == APART and question.rule else ""
            return f"{again}: the engine now says {question.default}{rule}"
        return f"{again}: {' and '.join(opened)} can now be chosen"


def _open(question: Any) -> Sequence[str]:
    """The choices that no rule forbids, as far as the question lists them."""
    forbidden = {getattr(one, "choice", one) for one in getattr(question, "forbidden", ())}
    return [one for one in getattr(question, "choices", ()) if one not in forbidden]


def _graph(id: str) -> str:
    return id.removesuffix("/lowered")
