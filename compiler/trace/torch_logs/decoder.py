"""A torch log (`TORCH_TRACE`) as the records of a recording.

A recording is of one process. A program that forks lets its children write into the same log: of
such a log one process is decoded, with what its parent had logged of files and compiles until then.
What no log holds is said by `NotInLog`, and what this one lacks by a further one at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from tcw.compiler.trace.compile_names import CompileNames
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.key_components import Lookups
from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import (
    SCHEMA_VERSION,
    AnyRecord,
    Collectives,
    DynamicSize,
    End,
    Environment,
    Guards,
    Location,
    NotInLog,
    Record,
    Settings,
    Source,
    SpecialisedSize,
    Start,
    Text,
    TextHash,
)
from tcw.compiler.trace.torch_logs import logged_frames
from tcw.compiler.trace.torch_logs.entries import HEADER, EntryReader, LogEntry
from tcw.compiler.trace.torch_logs.log_files import rank_of
from tcw.compiler.trace.torch_logs.logged_breaks import graph_break, unexplained_break
from tcw.compiler.trace.torch_logs.logged_graphs import KINDS, Graphs
from tcw.compiler.trace.torch_logs.logged_guards import (
    guards_of,
    listed_guards,
    recompile,
    with_bounds,
)
from tcw.compiler.trace.torch_logs.logged_phases import Phases
from tcw.compiler.trace.torch_logs.logged_places import LogSources, outside_torch, user_frames
from tcw.compiler.trace.writer import clean, text_hash

NEVER: tuple[Any, ...] = (
    *("source", "calls", "run time", "machine", "skipped frames", "steps", "autograd"),
    *("lowering", "fusion", "memory", "decisions", "kernel builds", "output", "kernel lines"),
)
"""What no torch log holds."""
_CACHES = {
    "aotautograd_cache": "aot autograd",
    "fx_graph_cache": "fx graph",
    "fx_graph_bundled_cache": "fx graph (bundled)",
}
_LOOKUP = re.compile(
    r"^(?P<cache>aotautograd_cache|fx_graph_cache|fx_graph_bundled_cache)_"
    r"(?P<verdict>hit|miss|bypass|hash)$"
)
_PATIENCE = 500
"""Entries that are read before the first record is written, to learn what the log is of."""
MOST_LINES = 200_000
"""Lines of all sources together, with those that the log does not quote."""
_DAY = 86400.0
UNKNOWN_LINE = "…"
"""Replaces a source line that the log does not quote."""


def is_log(head: bytes) -> bool:
    """Whether a file that begins like this is a torch log, perhaps a damaged one."""
    return HEADER.search(head) is not None


class LogDecoder:
    """Decodes the bytes of a log into records, for any split of the bytes."""

    def __init__(self, name: str = "", process: int | None = None) -> None:
        """`name`: of the file; it may have the rank. `process`: the id of the one to decode; None
        for the first that compiles."""
        self._process = process
        self._began = False
        """Whether an entry of that process was read."""
        self.losses = Losses()
        self.ended = False
        self._reader = EntryReader(self.losses)
        self._files = LogSources()
        self._compiles = CompileNames()
        self._rank = rank_of(name)
        self._pid = 0
        self._main = ""
        self._torch = ""
        self._triton = ""
        self._python = ""
        self._frames = logged_frames.Frames()
        self._symbols: dict[str, dict[str, DynamicSize]] = {}
        self._constants: dict[str, dict[str, SpecialisedSize]] = {}
        """By compile and source, as `_symbols`, which they were before."""
        """Compile -> its symbolic sizes, by their source."""
        self._guards: dict[str, Guards] = {}
        self._reasons = False
        """Whether the log has the reason of a break."""
        self._now = 0.0
        self._clear()

    def _clear(self) -> None:
        """Nothing was read yet of the process that is decoded."""
        self.start: Start | None = None
        self._held: list[Record] = []
        """Records from before the start is known."""
        self._out: list[Record] = []
        self._entries = 0
        self._first: float | None = None
        self._days = self._last = 0.0
        self._texts: set[TextHash] = set()
        self._lookups = 0
        self._phases = Phases(self._compiles)
        self._cache_keys = Lookups()
        self._graphs = Graphs(self._emit, self._text, self._files)
        self._decode = self._decoders()

    def _decoders(self) -> dict[str, Callable[[LogEntry], None]]:
        """What takes in an entry, by its kind."""
        return {
            "str": lambda entry: self._files.intern(entry.data),
            "torch_version": self._version,
            "chromium_event": self._event,
            "dynamo_start": self._frame,
            "dynamo_graph_break_reason": self._break,
            "dynamo_error": lambda entry: self._frames.failed(entry.compile_id, entry.text),
            "dynamo_cpp_guards_str": self._tree,
            "dynamo_guards": self._list,
            "create_symbol": self._symbol,
            "symbolic_shape_specialization": self._specialised,
            "recompile_reasons": self._recompile,
            "compilation_metrics": self._metrics,
            "inductor_output_code": self._graphs.output,
            "inductor_provenance_tracking_node_mappings": self._graphs.mapping,
            "inductor_collective_schedule": self._schedule,
            **dict.fromkeys(KINDS, self._graphs.graph),
        }

    def feed(self, data: bytes) -> list[AnyRecord]:
        """The records of all entries that `data` completes, in order."""
        records = self._records(self._reader.feed(data))
        return records if self._process is None or self._began else []

    def finish(self) -> list[AnyRecord]:
        """The last records: nothing follows."""
        records = self._records(self._reader.finish())
        if not self._entries or (self._process is not None and not self._began):
            return records
        self._graphs.finish()
        self._emit_all(self._frames.guarded.values())  # their compile did not end
        self._begin()
        self._sources()
        self._emit(NotInLog(kinds=self._missing()))
        open_ = self._frames.open()
        why = f"the log ends within the compile of {open_[-1]}" if open_ else ""
        self._emit(
            End(status="incomplete" if open_ else "ok", seconds=round(self._last, 6), reason=why)
        )
        self.ended = True
        return [*records, *self._taken()]

    def _mine(self, entry: LogEntry) -> bool:
        """Whether to read an entry: it is of the decoded process or, before that process begins,
        of its parent, which began the log."""
        if self._process is None and entry.kind == "dynamo_start":
            self._process = entry.pid
        if not self._began and self._process == entry.pid:
            self._began = True
            if self._entries and self._pid != entry.pid:
                self._fork()
        if self._began:
            return entry.pid == self._process
        return not self._entries or entry.pid == self._pid  # not what its siblings did

    def _fork(self) -> None:
        """The process begins: what was read is its parent's."""
        self._frames.leave()
        self._clear()

    def _records(self, entries: Iterator[LogEntry]) -> list[AnyRecord]:
        for entry in entries:
            if not self._mine(entry):
                continue
            self._entries += 1
            self._clock(entry)
            decode = self._decode.get(entry.kind) or (
                self._lookup if _LOOKUP.match(entry.kind) else None
            )
            if decode is None:
                continue
            if not entry.whole:
                self.losses.alter(entry.line)
                continue
            self._name(entry)
            self._attempt(entry)
            decode(entry)
        return self._taken()

    def _taken(self) -> list[AnyRecord]:
        taken, self._out = self._out, []
        return taken

    def _clock(self, entry: LogEntry) -> None:
        if self._first is None:
            self._first = self._now = entry.seconds
            self._pid = entry.pid
        if entry.seconds < self._now - _DAY / 2:
            self._days += _DAY
        self._now = entry.seconds
        self._last = max(self._last, self._days + entry.seconds - self._first)
        rank = entry.metadata.get("rank")
        if self._rank is None and isinstance(rank, int) and 0 <= rank <= 10_000_000:
            self._rank = rank

    def _emit(self, record: Record) -> None:
        if not record.at:
            at = self._days + self._now - (self._first or 0.0)
            msgspec.structs.force_setattr(record, "at", round(max(1e-6, at), 6))
        if self.start is not None:
            self._out.append(record)
            return
        self._held.append(record)
        if self._main or self._entries > _PATIENCE:
            self._begin()

    def _begin(self) -> None:
        """Write the start, then what was held back for it."""
        if self.start is not None:
            return
        self.start = Start(
            schema_version=SCHEMA_VERSION,
            tool_version="",
            settings=Settings(file=self._main, program=True),
            python=self._python,
            platform="",
            pid=self._pid,
            time=self._phases.origin or 0.0,
            rank=self._rank,
            at=1e-6,
        )
        self._out += [self.start, NotInLog(kinds=NEVER, at=1e-6)]
        if self._torch:
            self._out.append(Environment(torch=self._torch, triton=self._triton, at=1e-6))
        self._out += self._held
        self._held = []

    def _text(self, body: str) -> TextHash:
        body = clean(body)
        key = text_hash(body)
        if body and key not in self._texts:
            self._texts.add(key)
            self._emit(Text(hash=key, body=body))
        return key if body else ""

    def _version(self, entry: LogEntry) -> None:
        found = entry.json
        if isinstance(found, dict) and isinstance(version := found.get("pytorch_version"), str):
            self._learn_torch(version[:80])

    def _learn_torch(self, version: str) -> None:
        if not self._torch:
            self._torch = version
            if self.start is not None:
                self._emit(Environment(torch=version, triton=self._triton))

    def _event(self, entry: LogEntry) -> None:
        phase = self._phases.event(entry.json)
        if phase is None:
            return
        self._emit(phase)
        kind = "backward" if self._phases.backward else self._graphs.of_forward(phase.compile_id)
        recorded = logged_frames.cudagraph_recording(phase, kind)
        if recorded is not None:
            self._emit(recorded)

    def _name(self, entry: LogEntry) -> None:
        begins = entry.kind == "dynamo_start" and entry.attempt == 0
        name = self._compiles.begin if begins else self._compiles.of
        entry.compile_id = name(entry.torchs_id) if entry.torchs_id else ""

    def _attempt(self, entry: LogEntry) -> None:
        """Say that Dynamo has restarted a frame."""
        again = self._frames.attempt(entry.compile_id, entry.attempt)
        if again is not None:
            self._emit(again)

    def _frame(self, entry: LogEntry) -> None:
        stack = entry.data.get("stack") if isinstance(entry.data, dict) else None
        places = self._files.stack(stack)
        name = ""
        if isinstance(stack, list) and stack and isinstance(stack[-1], dict):
            name = str(stack[-1].get("name", ""))
        if not self._main and (own := user_frames(places)):
            self._main = own[0].file
        self._frames.callers.setdefault(entry.compile_id, len(user_frames(places[:-1])))
        location = places[-1] if places else Location(file="", line=0)
        record = self._frames.start(
            entry.compile_id, entry.attempt, location, user_name(name), name
        )
        if record.resumes_at is not None and not self._reasons:
            self._emit_all(unexplained_break(record, self._frames.starts, self._files))
        self._emit(record)

    def _emit_all(self, records: Iterable[Record]) -> None:
        for record in records:
            self._emit(record)

    def _break(self, entry: LogEntry) -> None:
        self._reasons = True
        frame = self._frames.starts.get(entry.compile_id)
        callers = self._frames.callers.get(entry.compile_id, 0)
        record = graph_break(
            entry.text, self._files, entry.compile_id, entry.attempt, frame, callers
        )
        self._frames.broke(record)
        self._emit(record)

    def _function(self, compile_id: str) -> str:
        start = self._frames.starts.get(compile_id)
        return start.function if start else ""

    def _tree(self, entry: LogEntry) -> None:
        sizes = self._symbols.get(entry.compile_id, {})
        symbols = {source: size.symbol for source, size in sizes.items()}
        record = guards_of(
            entry.text, self._files, entry.compile_id, self._function(entry.compile_id), symbols
        )
        record = with_bounds(record, sizes.values())
        constants = tuple(self._constants.get(entry.compile_id, {}).values())
        self._hold_guards(msgspec.structs.replace(record, specialised=constants), entry.compile_id)

    def _list(self, entry: LogEntry) -> None:
        record = listed_guards(
            entry.json, self._files, entry.compile_id, self._function(entry.compile_id)
        )
        if record is not None and entry.compile_id not in self._guards:
            self._hold_guards(record, entry.compile_id)

    def _hold_guards(self, record: Guards, compile_id: str) -> None:
        self._guards[compile_id] = record
        self._frames.guarded[compile_id] = record

    def _symbol(self, entry: LogEntry) -> None:
        size = logged_frames.dynamic_size(entry.data)
        if size is not None:
            self._symbols.setdefault(entry.compile_id, {})[size.source] = size

    def _specialised(self, entry: LogEntry) -> None:
        sizes = self._symbols.get(entry.compile_id, {})
        data = entry.data if isinstance(entry.data, dict) else {}
        stack = self._files.stack(data.get("user_stack"))
        constants = self._constants.setdefault(entry.compile_id, {})
        for source, size in list(sizes.items()):
            if size.symbol == data.get("symbol"):
                at = (user_frames(stack) or stack)[-1:]
                constants[source] = SpecialisedSize(name=size.name, location=next(iter(at), None))
                del sizes[source]

    def _recompile(self, entry: LogEntry) -> None:
        found = entry.json
        reasons = found if isinstance(found, list) else [entry.text]
        reasons = [reason for reason in reasons if isinstance(reason, str)]
        self._emit(
            recompile(
                reasons,
                self._files,
                entry.compile_id,
                self._frames.first(entry.compile_id),
                self._guards,
                self._compiles,
            )
        )

    def _metrics(self, entry: LogEntry) -> None:
        if not isinstance(entry.data, dict):
            return
        metrics = logged_frames.Metrics(entry.data, entry.compile_id, self._compiles)
        if metrics.file:
            self._files.add(metrics.file)
        self._graphs.write_kernels(metrics.compile_id)
        self._learn(metrics)
        self._emit_all(self._phases.summed(metrics.compile_id, metrics.start, metrics.nested))
        skip = logged_frames.cudagraph_skip(metrics, self._files)
        if skip is not None:
            self._emit(skip)
        self._emit_all(self._frames.end(metrics, self._files))

    def _learn(self, metrics: logged_frames.Metrics) -> None:
        self._python = self._python or metrics.words("python_version")
        self._triton = self._triton or metrics.words("triton_version")
        if torch := metrics.words("pytorch_version"):
            self._learn_torch(torch)

    def _lookup(self, entry: LogEntry) -> None:
        self._graphs.write_kernels(entry.compile_id)
        match, found = _LOOKUP.match(entry.kind), entry.json
        if match is None:
            return
        self._lookups += 1
        facts = found if isinstance(found, dict) else {}
        told = facts.get("time_saved_ns")
        saved = told / 1e9 if isinstance(told, (int, float)) and 0 <= told <= 1e18 else None
        verdict = match["verdict"]
        if verdict == "hash":  # torch before 2.6 has one name for all, and the verdict inside
            verdict = str(facts.get("cache_state"))
        graph = self._graphs.lowered.get(entry.compile_id, "") if "fx" in match["cache"] else ""
        known: Literal["hit", "miss", "bypass"] = "bypass"
        if verdict in ("hit", "miss"):
            known = "hit" if verdict == "hit" else "miss"
        cache, name = _CACHES[match["cache"]], entry.compile_id
        self._emit(self._cache_keys.record(cache, known, name, graph, facts, saved, self._text))

    def _schedule(self, entry: LogEntry) -> None:
        found = entry.json
        if isinstance(found, list) and found:
            operations = tuple(str(one)[:200] for one in found[:1_000_000])
            self._emit(
                Collectives(
                    compile_id=entry.compile_id,
                    operations=operations,
                    graph=base_graph(self._graphs.written.get(entry.compile_id, "")),
                )
            )

    def _sources(self) -> None:
        """The source lines that the log quotes, each at its place in its file."""
        room = MOST_LINES
        for file, quoted in self._files.lines.items():
            last = max(quoted)
            if last > room or not outside_torch(file):
                continue
            room -= last
            lines = [quoted.get(number, UNKNOWN_LINE) for number in range(1, last + 1)]
            self._emit(Source(file=file, text=self._text("\n".join(lines) + "\n")))

    def _missing(self) -> tuple[Any, ...]:
        """What other logs hold and this one does not."""
        there = {
            "guards": bool(self._guards),
            "graphs": self._graphs.any,
            "kernels": self._graphs.kernels > 0,
            "phases": self._phases.any,
            "caches": self._lookups > 0,
        }
        return tuple(kind for kind, found in there.items() if not found)
