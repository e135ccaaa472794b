"""The listed facts of two recordings, matched: each graph break, recompile, dynamic size, ….

Facts are those that `tcw check` compares with a budget. Here a break is known by its line, which
an edit does not make another one, and what a side that failed lacks is unknown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tcw.viewers.collected import grouped
from tcw.viewers.summary import summarise
from tcw.viewers.summary.budget import FactChange, standing_of
from tcw.viewers.summary.differences.alignment import Alignment, MatchedLine
from tcw.viewers.summary.facts import WRONG_RESULTS, Fact, failures, listed_facts


@dataclass(frozen=True)
class FactCount:
    """A listed fact, and how often each side has it."""

    fact: Fact
    """The run's, if it has one."""
    line: MatchedLine | None
    before: int
    after: int

    @property
    def change(self) -> FactChange:
        """Of a fact that only one side has, or one more often."""
        both = bool(self.before and self.after)
        before, after = ((one if both else 1) if one else None for one in (self.before, self.after))
        fact = self.fact
        name = (fact.title or fact.name) + (fact.more if after and not both else "")
        standing = standing_of(fact.group, fact.name, before, after)
        return FactChange(fact.group, name, before, after, standing)


class FactChanges:
    """The listed facts of two recordings, matched. Of a side that failed, what it lacks is unknown:
    it may have come later."""

    def __init__(self, alignment: Alignment) -> None:
        self.before, self.after = summarise(alignment.base), summarise(alignment.run)
        self._alignment = alignment

    @cached_property
    def complete(self) -> tuple[bool, bool]:
        """Whether each side got as far as the other."""
        sides = (self.before, self.after)
        ends = [
            {failure.name for failure in failures(side) if failure.name != WRONG_RESULTS}
            for side in sides
        ]
        return (True, True) if ends[0] == ends[1] else (not ends[0], not ends[1])

    @cached_property
    def counts(self) -> tuple[FactCount, ...]:
        """All of both, the run's first. A recompile for other values of the same is the same."""
        base, run = self._alignment.base, self._alignment.run
        old = self._keyed(listed_facts(base, self.before), gone=True)
        new = self._keyed(listed_facts(run, self.after), gone=False)
        others = {_subject(found): key for key, found in old.items() if key not in new}
        for key in [key for key in new if key not in old]:
            if (subject := _subject(new[key])) and (other := others.pop(subject, None)):
                old[key] = old.pop(other)
        return tuple(
            FactCount(
                *(new.get(key) or old[key])[0],
                *(sum(fact.times for fact, _ in side.get(key, ())) for side in (old, new)),
            )
            for key in dict.fromkeys([*new, *old])
        )

    def _keyed(
        self, facts: Iterable[Fact], gone: bool
    ) -> dict[Hashable, list[tuple[Fact, MatchedLine | None]]]:
        """By name; a break by its line, which an edit does not make another one."""

        def placed(fact: Fact) -> MatchedLine | None:
            if not fact.line:
                return None
            if gone:
                return self._alignment.line(fact.file, fact.line)
            return MatchedLine(fact.file, fact.line)

        return grouped(
            ((fact.group, fact.title, at) if fact.group == "break" else fact.key, (fact, at))
            for fact in facts
            for at in (placed(fact),)
        )

    def changed(self, *groups: str) -> list[FactCount]:
        """Facts that only one side has, or recompiles that one has more often, as far as the other
        is known."""
        known = (True, True) if groups == ("failure",) else self.complete
        return [
            count
            for count in self.counts
            if count.fact.group in groups
            if (known[0] and not count.before)
            or (known[1] and not count.after)
            or (all(known) and count.fact.subject and count.before != count.after)
        ]


def _subject(found: Sequence[tuple[Fact, MatchedLine | None]]) -> Hashable:
    """Of a recompile, what changed and where; None of another fact."""
    fact, at = found[0]
    return (fact.subject, at) if fact.subject else None
