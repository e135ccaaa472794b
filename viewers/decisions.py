"""What a recording holds about each decision: the question, the choice, the tests of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from compiler.control.decisions import FUSE
from compiler.trace.records import (
    AnyRecord,
    Asked,
    Decided,
    FusionGroups,
    FusionPair,
    FusionRound,
)

ALL_ROUNDS = 1 << 30
"""The last finished round of a graph whose fusion is over."""


class Decisions:
    """The records of decisions by id, the only place where they are joined."""

    def __init__(self) -> None:
        self._read = 0
        self.asked: dict[str, Asked] = {}
        """The last time that a person was asked."""
        self.decided: dict[str, Decided] = {}
        """The last choice, in the order of the first one."""
        self.tests: dict[str, list[FusionPair]] = {}
        """How a pair fared, each time that it was considered."""
        self.posed: dict[str, Asked | FusionPair] = {}
        """The first record that tells of a fusion of two nodes."""
        self.fused: set[tuple[str, frozenset[str]]] = set()
        """(graph, both sides) of each fusion that a round carried out."""
        self.rounds: dict[str, int] = {}
        """Graph -> its last finished round of fusion."""

    def follow(self, records: Sequence[AnyRecord]) -> None:
        """Take what was added to the list since the last time."""
        for record in islice(records, self._read, None):
            if isinstance(record, FusionPair):
                id = record.id or f"{record.graph}/{FUSE}/{record.first}+{record.second}"
                self.tests.setdefault(id, []).append(record)
                if record.first != record.second and not record.within:
                    self.posed.setdefault(id, record)
            elif isinstance(record, Decided):
                self.decided[record.id] = record
            elif isinstance(record, Asked):
                self.asked[record.id] = record
                if record.kind == FUSE:
                    self.posed.setdefault(record.id, record)
            elif isinstance(record, FusionRound):
                self.fused |= {(record.graph, frozenset(one[:2])) for one in record.fused}
                self.rounds[record.graph] = max(self.rounds.get(record.graph, 0), record.round)
            elif isinstance(record, FusionGroups):
                self.rounds[record.graph] = ALL_ROUNDS
        self._read = len(records)

    def taken(self, kind: str, *graphs: str) -> list[Decided]:
        """The last choice of each decision of one kind in these graphs."""
        return [one for one in self.decided.values() if one.kind == kind and one.graph in graphs]
