"""Two engines on one model side by side: what each generated for the same lines, how long it took,
how fast the result is."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import EngineSpeed, Kernel
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.kernels import loop_nests
from tcw.viewers.summary.memory_plans import highest_peak, peaks

STAGES = (
    "capture", "autograd", "fx passes", "lowering", "fusion", "memory", "codegen", "build", "other",
)  # fmt: skip
"""In compile order."""


@dataclass(frozen=True)
class EngineColumn:
    """One engine."""

    engine: str
    recording: Recording
    summary: Summary
    loop_nests: int | None
    """Groups of fused loops, all graphs together; None if fusion was not reached."""
    calls: int
    """Kernels that are calls into a library."""
    functions: int
    """Generated functions that are not calls."""
    peak_bytes: int | None
    """The highest peak of its graphs; None if one is unknown, or memory was not planned."""


@dataclass(frozen=True)
class Both:
    """One figure per engine, in the order of `Comparison.columns`; None if missing."""

    what: str
    first: float | None
    second: float | None


@dataclass(frozen=True)
class LineUp:
    """The kernels of both engines for the same user lines in one graph."""

    graph: str
    """Id of AOTAutograd's graph: `0/0/forward`."""
    lines: tuple[tuple[str, int], ...]
    first: tuple[Kernel, ...]
    second: tuple[Kernel, ...]


@dataclass(frozen=True)
class GraphPair:
    """One graph under both engines."""

    graph: str
    nests: Both
    calls: Both
    peak: Both


@dataclass(frozen=True)
class Comparison:
    first: EngineColumn
    second: EngineColumn
    speed: EngineSpeed | None
    stages: tuple[Both, ...]
    """Wall seconds by stage."""
    cpu: tuple[Both, ...]
    """CPU seconds by stage, without processes that were not waited for."""
    graphs: tuple[GraphPair, ...]
    kernels: tuple[LineUp, ...]

    @property
    def columns(self) -> tuple[EngineColumn, EngineColumn]:
        return self.first, self.second

    @property
    def ended(self) -> str:
        """What ended the recording of both before they were timed: `interrupted after 42 s`, with
        what was being done in brackets."""
        first, second = (column.summary.verdict for column in self.columns)
        if self.speed is not None or first != second or first.tone != "failed":
            return ""
        reason = first.detail.text
        return f"{first.headline} ({reason})" if reason else first.headline


def compare(recording: Recording) -> Comparison | None:
    """The comparison; None unless the recording has the parts of two engines."""
    if len(recording.engines) < 2:
        return None
    first, second = (_column(engine, part) for engine, part in list(recording.engines.items())[:2])
    return Comparison(
        first=first,
        second=second,
        speed=recording.last(EngineSpeed),
        stages=_stages(first, second, cpu=False),
        cpu=_stages(first, second, cpu=True),
        graphs=_graphs(first, second),
        kernels=_line_up(first, second),
    )


def _column(engine: str, recording: Recording) -> EngineColumn:
    kernels = recording.kernels.values()
    return EngineColumn(
        engine=engine,
        recording=recording,
        summary=summarise(recording),
        loop_nests=loop_nests(recording.kernels.values()),
        calls=sum(kernel.language == "aten" for kernel in kernels),
        functions=sum(kernel.generated for kernel in kernels),
        peak_bytes=highest_peak(recording),
    )


def _stages(first: EngineColumn, second: EngineColumn, cpu: bool) -> tuple[Both, ...]:
    sides = [
        {one.stage: one.cpu_seconds if cpu else one.seconds for one in column.summary.stages}
        for column in (first, second)
    ]
    names = [name for name in STAGES if any(name in side for side in sides)]
    names += [name for side in sides for name in side if name not in STAGES]
    return tuple(Both(n, sides[0].get(n), sides[1].get(n)) for n in dict.fromkeys(names))


def _graphs(first: EngineColumn, second: EngineColumn) -> tuple[GraphPair, ...]:
    sides = [_by_graph(column.recording) for column in (first, second)]
    names = dict.fromkeys(name for side in sides for name in side)
    unknown: tuple[float | None, ...] = (None, None, None)
    pairs = []
    for name in names:
        nests, calls, peak = (
            Both(what, *(side.get(name, unknown)[place] for side in sides))
            for place, what in enumerate(("loop nests", "library calls", "peak bytes"))
        )
        pairs.append(GraphPair(name, nests, calls, peak))
    return tuple(pairs)


def _by_graph(recording: Recording) -> dict[str, tuple[float | None, float | None, float | None]]:
    """Graph -> (loop nests, library calls, peak bytes)."""
    planned = peaks(recording)
    kernels = grouped((base_graph(one.graph), one) for one in recording.kernels.values())
    calls = {name: sum(one.language == "aten" for one in its) for name, its in kernels.items()}
    return {
        name: (loop_nests(kernels.get(name, ())), calls.get(name), planned.get(name))
        for name in dict.fromkeys([*kernels, *planned])
    }


def lines_of(kernel: Kernel) -> set[tuple[str, int]]:
    """The user lines a kernel comes from."""
    places = [*kernel.locations, *(place for line in kernel.lines for place in line.locations)]
    return {(place.file, place.line) for place in places}


def _line_up(first: EngineColumn, second: EngineColumn) -> tuple[LineUp, ...]:
    """Kernels of both that share user lines, graph by graph; those without a line last."""
    sides = [
        [one for one in column.recording.kernels.values() if not one.predicted]
        for column in (first, second)
    ]
    found: list[LineUp] = []
    for graph in dict.fromkeys(base_graph(k.graph) for side in sides for k in side):
        mine = [[k for k in side if base_graph(k.graph) == graph] for side in sides]
        for lines, members in _together([(k, lines_of(k)) for side in mine for k in side]):
            one, other = (tuple(k for k in side if id(k) in members) for side in mine)
            found.append(LineUp(graph, tuple(sorted(lines)), one, other))
    return tuple(found)


def _together(
    kernels: list[tuple[Kernel, set[tuple[str, int]]]],
) -> list[tuple[set[tuple[str, int]], set[int]]]:
    """Kernels grouped by shared lines: (lines, identities of kernels), by first line."""
    groups: list[tuple[set[tuple[str, int]], set[int]]] = []
    for kernel, lines in kernels:
        joined = (set(lines), {id(kernel)})
        apart = []
        for group in groups:
            if group[0] & joined[0] or not (group[0] or joined[0]):
                joined = (group[0] | joined[0], group[1] | joined[1])
            else:
                apart.append(group)
        groups = [*apart, joined]
    return sorted(groups, key=lambda group: (not group[0], sorted(group[0])))
