"""What a recording holds about each decision: the question, the choice, the tests of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tcw.compiler.protocol.decision import FUSE, INDUCTOR, engine_of
from tcw.compiler.trace.records import AnyRecord, Decided, FusionGroups, FusionRound

ALL_ROUNDS = 1 << 30
"""The last finished round of a graph whose fusion is over."""


class RecordedDecisions:
    """The records of decisions by id."""

    def __init__(self) -> None:
        self._read = 0
        self.asked: dict[str, Decided] = {}
        """The last time that a person was asked."""
        self.times_asked = 0
        self.decided: dict[str, Decided] = {}
        """The last choice, in the order of the first one. Of Inductor's fusions, only those
        that a person or an override was asked about: its tests do not say what was fused."""
        self.tests: dict[str, list[Decided]] = {}
        """The tests of a pair."""
        self.posed: dict[str, Decided] = {}
        """The first record about a fusion of two nodes."""
        self.fused: set[tuple[str, frozenset[str]]] = set()
        """(graph, both sides) of each fusion that a round carried out."""
        self.rounds: dict[str, int] = {}
        """Graph -> its last finished round of fusion."""

    def follow(self, records: Sequence[AnyRecord]) -> None:
        """Take the records added to the list since the last call."""
        for record in islice(records, self._read, None):
            if isinstance(record, Decided):
                self._see(record)
            elif isinstance(record, FusionRound):
                self.fused |= {(record.graph, frozenset(one[:2])) for one in record.fused}
                self.rounds[record.graph] = max(self.rounds.get(record.graph, 0), record.round)
            elif isinstance(record, FusionGroups):
                self.rounds[record.graph] = ALL_ROUNDS
        self._read = len(records)

    def _see(self, record: Decided) -> None:
        pair = record.pair
        if record.open:
            self.asked[record.id] = record
            self.times_asked += 1
            if record.kind == FUSE:
                self.posed.setdefault(record.id, record)
        elif pair is None or engine_of(record.id) != INDUCTOR:
            self.decided[record.id] = record
        if pair is not None:
            self.tests.setdefault(record.id, []).append(record)
            if pair.first != pair.second and not pair.within:
                self.posed.setdefault(record.id, record)

    def taken(self, kind: str, *graphs: str) -> list[Decided]:
        """The last choice of each decision of one kind in these graphs."""
        return [one for one in self.decided.values() if one.kind == kind and one.graph in graphs]
