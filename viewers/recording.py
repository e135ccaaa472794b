"""A trace, indexed for reading: every viewer starts from a `Recording`.

It can be fed while the trace still grows. A trace of both engines holds a `Recording` for each,
which reads as if that engine had been recorded alone; so does one of several runs. Nothing here
knows how anything is shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

from msgspec import structs

from tcw.compiler.protocol.decision import FUSE, INDUCTOR, engine_of
from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import (
    AnyRecord,
    CallStart,
    Ceilings,
    Decided,
    End,
    EnginePart,
    EngineSpeed,
    Environment,
    Failure,
    FixTrial,
    FrameStart,
    FusionGroups,
    FusionPair,
    FusionRound,
    Graph,
    GraphBreak,
    Guards,
    Kernel,
    MemoryPlan,
    Node,
    Note,
    NotInLog,
    Numerics,
    Partition,
    Recompile,
    Record,
    Run,
    SchedulerNode,
    Settings,
    Source,
    Speed,
    Start,
    Text,
    TextHash,
    Waiting,
    WhatIf,
)
from tcw.compiler.trace.records.session import FactKind

R = TypeVar("R", bound=Record)
_PLACED = (
    FrameStart, Graph, GraphBreak, Guards, Recompile, Partition, Decided, FusionPair, MemoryPlan,
    Kernel, Failure,
)  # fmt: skip
"""The records at which a reader can stop; the timeline shows where they are."""
_TOLD = frozenset((*_PLACED, Text, Source))
"""The kinds that `feed` examines: most records of a large trace are of others."""


_SHARED = (Note, Ceilings, FixTrial, End)
"""The records that belong to every part, wherever they are in the trace. So do texts and sources,
which a part looks up in the dictionaries of the whole recording."""
MOST_SHARED = 2_000_000
"""The limit of such records over all runs together. A person makes some dozens of runs; a trace of
many thousands would be many times as large in memory as on disk."""


def _as_of(record: AnyRecord, settings: Settings | None, engine: str = "") -> AnyRecord:
    """The record as a trace with these settings, or of this engine alone, would have it."""
    if not isinstance(record, Start):
        return record
    settings = settings or structs.replace(record.settings, engine=engine)
    return structs.replace(record, settings=settings)


def lines_of(source: str) -> list[str]:
    """Lines as Python counts them: a form feed or a Unicode line separator does not end one."""
    lines = re.split(r"\r\n|\r|\n", source)
    return lines if lines[-1] else lines[:-1]


class Recording:
    """The records of one trace, by kind and by name, in the order in which they were written."""

    def __init__(
        self,
        records: Iterable[AnyRecord] = (),
        losses: Losses | None = None,
        *,
        of_one_run: bool = False,
        file: Path | None = None,
    ) -> None:
        self.records: list[AnyRecord] = []
        self.losses = losses or Losses()
        self.file = file
        """The trace that the records are in; None if they are not kept."""
        self._by_kind: dict[type[Record], list[Record]] = defaultdict(list)
        self._texts: dict[TextHash, str] = {}
        self._sources: dict[str, list[str]] = {}
        self.graphs: dict[str, Graph] = {}
        self.kernels: dict[str, Kernel] = {}
        self._nodes: dict[str, tuple[Graph, dict[str, Node]]] = {}
        self._operations: dict[tuple[str, str], SchedulerNode] = {}
        self._kernels_of: dict[str, list[Kernel]] = {}
        self._indexed: dict[type[Record], int] = {}
        self._places: dict[int, int] = {}
        self._decisions = RecordedDecisions()
        self.engines: dict[str, Recording] = {}
        """Engine -> its part, in the order in which they ran; empty if only one was recorded."""
        self.runs: dict[int, Recording] = {}
        """Number of a run -> its part, in order; empty where the compile was not driven. A run of
        both engines has its own `engines`, and those of the whole are empty."""
        self.runs_left_out: set[int] = set()
        """Numbers of the runs without a part of their own: all together would hold too much."""
        self._of_one_run = of_one_run
        self._part: Recording | None = None
        """The part of the current records."""
        self._common: list[AnyRecord] = []
        """The start of each part: all before the first part, then what is shared."""
        self.feed(records)

    @classmethod
    def open(cls, path: Path) -> Recording:
        """Read a trace file; raises `TraceError` and `OSError` as `read_trace` does."""
        trace = read_trace(path)
        return cls(trace.records, trace.losses, file=path)

    def feed(self, records: Iterable[AnyRecord]) -> None:
        for record in records:
            kind = type(record)
            if kind is Text or kind is Source:
                pass
            elif self._part is None and kind is not Run and kind is not EnginePart:
                self._common.append(record)
            else:
                self._pass_on(record)
            self.records.append(record)
            self._by_kind[kind].append(record)
            if kind not in _TOLD:
                continue
            if kind in _PLACED:
                self._places[id(record)] = len(self.records)
            if isinstance(record, Text):
                self._texts[record.hash] = record.body
            elif isinstance(record, Source):
                self._sources[record.file] = lines_of(self.text(record.text))
            elif isinstance(record, Graph):
                self.graphs[record.id] = record
            elif isinstance(record, Kernel):
                self.kernels[record.id] = record

    def _pass_on(self, record: AnyRecord) -> None:
        """Give a part its own records, and each part the shared ones."""
        if isinstance(record, Run) and not self._of_one_run:
            if record.number in self.runs:
                self._part = self.runs[record.number]
            elif (len(self.runs) + 1) * len(self._common) <= MOST_SHARED:
                self._part = self.runs[record.number] = self._new_part(record.settings)
            else:
                self._part = Recording(of_one_run=True)  # of a run that is not kept
                self.runs_left_out.add(record.number)
            self._part.feed([record])
        elif isinstance(record, EnginePart) and not self.runs:
            if record.engine not in self.engines:
                self.engines[record.engine] = self._new_part(None, record.engine)
            self._part = self.engines[record.engine]
        elif self._part is None or isinstance(record, _SHARED):
            self._common.append(record)
            parts = (*self.engines.values(), *self.runs.values())
            if len(parts) * len(self._common) <= MOST_SHARED:
                for part in parts:
                    part.feed([record])
        elif isinstance(record, WhatIf) or (isinstance(record, EngineSpeed) and not self.runs):
            return
        else:
            self._part.feed([record])

    def _new_part(self, settings: Settings | None, engine: str = "") -> Recording:
        of_one_run = self._of_one_run or settings is not None
        part = Recording(losses=self.losses, of_one_run=of_one_run, file=self.file)
        part._texts, part._sources = self._texts, self._sources
        part.feed(_as_of(record, settings, engine) for record in self._common)
        return part

    def all(self, kind: type[R]) -> list[R]:
        """All records of one kind, in order."""
        return cast(list[R], self._by_kind[kind])

    def last(self, kind: type[R]) -> R | None:
        records = self._by_kind[kind]
        return cast(R, records[-1]) if records else None

    def nodes(self, graph: str) -> dict[str, Node]:
        """The FX nodes of a graph by name; empty if it was not recorded."""
        found = self.graphs.get(graph)
        if found is None:
            return {}
        known = self._nodes.get(graph)
        if known is None or known[0] is not found:
            known = self._nodes[graph] = (found, {node.name: node for node in found.nodes})
        return known[1]

    @property
    def operations(self) -> dict[tuple[str, str], SchedulerNode]:
        """(graph, `op3`) -> scheduler node."""
        for node in self._new(SchedulerNode):
            self._operations[node.graph, node.name] = node
        return self._operations

    @property
    def kernels_of(self) -> dict[str, list[Kernel]]:
        """Compile id -> its kernels, predicted ones included."""
        if self._new(Kernel):
            self._kernels_of = {}
            for kernel in self.kernels.values():
                graph = self.graphs.get(kernel.graph)
                compile_id = graph.compile_id if graph else compile_of(kernel.graph)
                self._kernels_of.setdefault(compile_id, []).append(kernel)
        return self._kernels_of

    def _new(self, kind: type[R]) -> list[R]:
        """The records of a kind that came since this was last asked."""
        found = self.all(kind)
        since = found[self._indexed.get(kind, 0) :]
        self._indexed[kind] = len(found)
        return since

    @property
    def decisions(self) -> RecordedDecisions:
        """What the records so far say about each decision."""
        self._decisions.follow(self.records)
        return self._decisions

    def place(self, record: Record) -> int:
        """Which record of the trace this is, from 1; 0 if no view can stand on it."""
        return self._places.get(id(record), 0)

    def lacks(self, kind: FactKind) -> bool:
        """Whether this recording was read from a log without facts of this kind, so that their
        absence means nothing. False for a trace of ours."""
        return any(kind in record.kinds for record in self.all(NotInLog))

    @property
    def lacking(self) -> tuple[FactKind, ...]:
        """All such kinds; () for a trace of ours, and some for every log."""
        return tuple(kind for record in self.all(NotInLog) for kind in record.kinds)

    @property
    def script(self) -> bool:
        """Whether the file calls torch.compile itself: the settings' engine, mode and gradients
        are not those of its graphs. False for a driven compile, which shows what `,` changes."""
        settings = self.settings
        if settings is None or settings.program or self.lacking or self.speed is not None:
            return False
        called = bool(self.all(CallStart)) or bool(self.all(Waiting))
        return bool(self.all(FrameStart)) and not called

    def text(self, key: TextHash) -> str:
        """The text with this hash; "" if the trace lost it."""
        return self._texts.get(key, "")

    def source(self, file: str) -> list[str]:
        """The lines of a source file in the trace; empty if it has none."""
        return self._sources.get(file, [])

    def line(self, file: str, number: int) -> str:
        """One source line, 1-based, without its end; "" if the trace does not carry it."""
        lines = self._sources.get(file, [])
        return lines[number - 1] if 0 < number <= len(lines) else ""

    @property
    def files(self) -> list[str]:
        return list(self._sources)

    @property
    def start(self) -> Start | None:
        """The first one; a later one comes from a worker that was restarted for a run."""
        starts = self.all(Start)
        return starts[0] if starts else None

    @property
    def settings(self) -> Settings | None:
        """Those of the start; None before it."""
        return self.start.settings if self.start else None

    @property
    def run_settings(self) -> Settings | None:
        """Those of the last run; where the compile was not driven, those of the start."""
        run = self.last(Run)
        return run.settings if run else self.settings

    @property
    def environment(self) -> Environment | None:
        return self.last(Environment)

    @property
    def end(self) -> End | None:
        return self.last(End)

    @property
    def failure(self) -> Failure | None:
        """The first failure: later ones follow from it."""
        failures = self.all(Failure)
        return failures[0] if failures else None

    @property
    def speed(self) -> Speed | None:
        return self.last(Speed)

    @property
    def numerics(self) -> Numerics | None:
        return self.last(Numerics)


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
        return [
            decided
            for decided in self.decided.values()
            if decided.kind == kind and decided.graph in graphs
        ]
