"""Graph breaks: the break of each compile, and the sites they are grouped into."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass

from tcw.compiler.trace.records import Advice, FrameStart, Graph, GraphBreak, Location
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary.place import Place, place_of

HOST_WAITS = ("data-dependent", "data dependent", "tensor.item(", "tensor.numpy(")
"""Types of break at which Python needs a tensor's data, so the host waits for the device."""

BRANCH = "branch on tensor data"
BRANCH_ON_ARRAY = "branch on a NumPy value"
VIOLATION = "Constraint violation"
"""The type of a record that is no break: a size is marked as dynamic, and the code needs one
value of it, which torch finds out after it has captured the graph."""
TITLES = {
    "Data-dependent branching": BRANCH,
    "Data-dependent branching with non-constant __bool__": BRANCH,
    "Data-dependent assertion failed (cannot compile partial graph)": "assertion on tensor data",
    "Data dependent operator": "operator whose result depends on tensor data",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": "Tensor.item()",
    "Tensor.numpy() with trace_numpy=False": "Tensor.numpy()",
    "Skip calling `torch.compiler.disable()`d function": "call of a disabled function",
    "Skip inlining `torch.compiler.disable()`d function": "call of a disabled function",
    "logging.Logger method not supported for non-export cases": "logging call",
    "Call to `torch._dynamo.graph_break()`": "torch._dynamo.graph_break()",
    VIOLATION: "marked as dynamic, but the code needs one value",
    "attempted to trace numpy function unsupported by PyTorch": "NumPy function unknown to torch",
}
"""Shorter names than torch's for the most common types; the others keep torch's."""


@dataclass(frozen=True)
class Crossings:
    """The values that are live across a break."""

    names: tuple[str, ...]
    """Names of the tensors; other values are in the record."""
    bytes: int | None
    """Bytes of all crossing tensors; None if the size of one is symbolic or unknown."""


@dataclass(frozen=True)
class BreakSite:
    """One place and reason of a graph break, over all compiles."""

    gb: str
    type: str
    title: str
    reason: str
    """torch's own words, first line."""
    place: Place
    outcome: str
    """`break`, `skip-frame` (the whole frame runs in Python) or `error` (fullgraph)."""
    records: tuple[GraphBreak, ...]
    compile_ids: tuple[str, ...]
    extra_graphs: int | None
    """Extra graphs that one call runs because of it: the compiled pieces that resume after it.
    None if the recording ended before that was known."""
    crossings: Crossings
    host_waits: bool
    """Python needs a tensor's data here, so it waits for the device to compute it."""
    advice: tuple[Advice, ...]
    """Ours first, then torch's hints."""
    resumed: frozenset[str] = frozenset()
    """Frames (`1` of `1/0`) that resume after it and captured a graph."""
    first: bool = False
    """Whether no graph was captured before it: what follows then is not a further graph."""

    @property
    def more_graphs(self) -> int:
        """Graphs that one call has more than without it."""
        return max(0, (self.extra_graphs or 0) - self.first)

    @property
    def skipped(self) -> GraphBreak | None:
        """The break after which torch left a whole function to Python."""
        return next((record for record in self.records if record.outcome == "skip-frame"), None)

    @property
    def count(self) -> int:
        """Compiles in which it happened."""
        return len(self.compile_ids)

    @property
    def inside(self) -> Location | None:
        """The line that torch's own message names, if that is in a library that `place` calls."""
        return self.records[0].inside


def break_sites(recording: Recording) -> tuple[BreakSite, ...]:
    """Distinct sites, by file, line and code, in order of first occurrence."""
    sites = grouped(
        ((record.location.file, record.location.line, record.gb or record.type), record)
        for record in recording.all(GraphBreak)
    )
    captured = {graph.compile_id for graph in recording.all(Graph) if graph.kind == "captured"}
    resumed = resumed_after(recording)
    after: dict[int, set[str]] = defaultdict(set)
    for one, record in resumed.items():
        if one in captured:
            after[id(record)].add(one.partition("/")[0])

    def is_first(record: GraphBreak) -> bool:
        one, seen = record.compile_id, set[str]()
        while one not in captured and one in resumed and one not in seen:
            seen.add(one)
            one = resumed[one].compile_id
        return one not in captured

    return tuple(
        _site(
            recording,
            records,
            set().union(*(after[id(record)] for record in records)),
            all(map(is_first, records)),
        )
        for records in sites.values()
    )


def break_title(record: GraphBreak) -> str:
    """The reason in a few words: ours for the most common types, else torch's type."""
    name = record.context.split() if record.context else []
    if record.type == "Failed to trace builtin operator" and name[:1] == ["builtin"] and name[1:]:
        return f"{name[1]}()"
    raised = _RAISED.fullmatch(record.context) if record.type == "Observed exception" else None
    if raised is not None:
        return ": ".join(filter(None, (f"observed {raised['type']}", _message(raised["given"]))))
    title = TITLES.get(record.type, record.type)
    if record.type == VIOLATION:
        return f"{record.context} is {title}"
    array = title == BRANCH and "NumpyNdarrayVariable" in record.context
    return BRANCH_ON_ARRAY if array else title


_RAISED = re.compile(r"raised exception (?P<type>\w+)\((?P<given>.*)\)", re.DOTALL)
"""torch's context of an exception that nothing handles in the compiled function."""


def _message(given: str) -> str:
    """The message of an exception that is made with one text; "" of any other."""
    try:
        value = ast.literal_eval(given)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    return " ".join(value.split()) if isinstance(value, str) else ""


def host_waits(record: GraphBreak) -> bool:
    """Whether Python needs a tensor's data at this break."""
    kind = record.type.lower()
    return any(words in kind for words in HOST_WAITS)


def crossings_of(record: GraphBreak) -> Crossings:
    """Names and bytes of the tensors that cross the break."""
    total: int | None = 0
    names = []
    for value in record.crossing:
        if value.tensor is not None:
            names.append(value.name)
            size = value.tensor.bytes
            total = None if size is None or total is None else total + size
    return Crossings(names=tuple(names), bytes=total)


def ordered_advice(advice: tuple[Advice, ...]) -> tuple[Advice, ...]:
    """Ours before torch's, otherwise as recorded."""
    return tuple(sorted(advice, key=lambda one: one.by != "tcw"))


def _site(
    recording: Recording, records: list[GraphBreak], frames: set[str], is_first: bool
) -> BreakSite:
    first = records[0]
    place = place_of(recording, first.location, first.source_line)
    assert place is not None
    ended = first.outcome != "break"
    return BreakSite(
        gb=first.gb,
        type=first.type,
        title=break_title(first),
        reason=first.reason,
        place=place,
        outcome=first.outcome,
        records=tuple(records),
        compile_ids=tuple(dict.fromkeys(record.compile_id for record in records)),
        extra_graphs=0 if ended else len(frames) if frames or recording.end else None,
        crossings=crossings_of(first),
        host_waits=host_waits(first),
        advice=ordered_advice(first.advice),
        resumed=frozenset(frames),
        first=is_first,
    )


def resumed_after(recording: Recording) -> dict[str, GraphBreak]:
    """Compile of a resume function -> the break after which it resumes.

    A resume function continues on the line of the break, or on the line that called the function
    it was in. If a line breaks several times, it resumes after the last break before it; a restart
    comes after a break of its own.
    """
    last: dict[tuple[str, int], GraphBreak] = {}
    found: dict[str, GraphBreak] = {}
    for record in recording.records:
        if isinstance(record, GraphBreak):
            for place in (*record.stack, record.location):
                last[place.file, place.line] = record
        elif isinstance(record, FrameStart) and record.resumes_at is not None:
            before = last.get((record.location.file, record.resumes_at))
            if before is not None:
                found.setdefault(record.compile_id, before)
    return found
