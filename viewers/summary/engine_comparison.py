"""Two engines on one model side by side: what each generated for the same lines, how long it took,
how fast the result is."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.trace.matching import DisjointSets, base_graph
from tcw.compiler.trace.records import EngineSpeed, Kernel
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.kernels import kernel_lines, loop_nests
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
        {
            stage.stage: stage.cpu_seconds if cpu else stage.seconds
            for stage in column.summary.stages
        }
        for column in (first, second)
    ]
    names = [name for name in STAGES if any(name in side for side in sides)]
    names += [name for side in sides for name in side if name not in STAGES]
    return tuple(Both(n, sides[0].get(n), sides[1].get(n)) for n in dict.fromkeys(names))


def _graphs(first: EngineColumn, second: EngineColumn) -> tuple[GraphPair, ...]:
    sides = [_by_graph(column.recording) for column in (first, second)]
    return tuple(
        GraphPair(
            graph,
            *(
                Both(what, *(side.get(graph, (None,) * 3)[at] for side in sides))
                for at, what in enumerate(("loop nests", "library calls", "peak bytes"))
            ),
        )
        for graph in dict.fromkeys(graph for side in sides for graph in side)
    )


def _by_graph(recording: Recording) -> dict[str, tuple[float | None, ...]]:
    """Graph -> (loop nests, library calls, peak bytes)."""
    planned = peaks(recording)
    kernels = grouped((base_graph(kernel.graph), kernel) for kernel in recording.kernels.values())
    calls = {
        name: sum(kernel.language == "aten" for kernel in its) for name, its in kernels.items()
    }
    return {
        name: (loop_nests(kernels.get(name, ())), calls.get(name), planned.get(name))
        for name in dict.fromkeys([*kernels, *planned])
    }


def _line_up(first: EngineColumn, second: EngineColumn) -> tuple[LineUp, ...]:
    """Kernels of both that share user lines, graph by graph; those without a line last."""
    sides = [
        [one for one in column.recording.kernels.values() if not one.predicted]
        for column in (first, second)
    ]
    shared: DisjointSets[tuple[object, ...]] = DisjointSets()
    lines = {id(kernel): kernel_lines(kernel) for side in sides for kernel in side}
    keys: dict[int, tuple[object, ...]] = {}
    for kernel in (kernel for side in sides for kernel in side):
        graph = base_graph(kernel.graph)
        own: list[tuple[object, ...]] = [(graph, *line) for line in lines[id(kernel)]]
        own = own or [(graph,)]
        shared.join(own)
        keys[id(kernel)] = own[0]
    rows = grouped(
        (shared.root(keys[id(kernel)]), (at, kernel))
        for at, side in enumerate(sides)
        for kernel in side
    )
    graphs = list(dict.fromkeys(base_graph(kernel.graph) for side in sides for kernel in side))
    line_ups = [
        LineUp(
            base_graph(members[0][1].graph),
            tuple(sorted({line for _, kernel in members for line in lines[id(kernel)]})),
            *(tuple(kernel for side, kernel in members if side == at) for at in (0, 1)),
        )
        for members in rows.values()
    ]
    return tuple(
        sorted(
            line_ups,
            key=lambda line_up: (graphs.index(line_up.graph), not line_up.lines, line_up.lines),
        )
    )
