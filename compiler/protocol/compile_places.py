"""Where a compile is, from its records alone: stage, compile, attempt, instruction."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcw.compiler.trace.records import (
    CacheLookup,
    CallStart,
    Decided,
    FrameEnd,
    FrameStart,
    FusionGroups,
    FusionRound,
    Graph,
    GraphBreak,
    Guards,
    Kernel,
    Location,
    Lowered,
    MemoryPlan,
    Partition,
    Recompile,
    Record,
    SchedulerNode,
    Stage,
    StageStart,
    Step,
    Wrapper,
)

_STAGES: dict[type[Record], Stage] = {
    FrameStart: "capture",
    Step: "capture",
    GraphBreak: "capture",
    Recompile: "capture",
    Guards: "capture",
    Partition: "autograd",
    Lowered: "lowering",
    SchedulerNode: "fusion",
    FusionRound: "fusion",
    FusionGroups: "fusion",
    MemoryPlan: "memory",
    Kernel: "codegen",
    Wrapper: "codegen",
}
"""The stage that a record implies; other records leave the stage unchanged."""

_GRAPHS: dict[str, Stage] = {"captured": "capture", "lowered": "lowering"}


@dataclass(slots=True)
class CompilePlace:
    """The place of the last record."""

    stage: Stage = "load"
    compile_id: str = ""
    attempt: int = 0
    graph: str = ""
    location: Location | None = None

    def see(self, record: Record) -> None:
        """Follow one record."""
        if isinstance(record, StageStart):
            self.stage = record.stage
        elif isinstance(record, Graph):
            self.stage = _GRAPHS.get(record.kind, "autograd")
        elif isinstance(record, Decided) and record.pair is not None:
            self.stage = "fusion"
        else:
            self.stage = _STAGES.get(type(record), self.stage)
        if isinstance(record, FrameStart | Step):
            self.compile_id, self.attempt = record.compile_id, record.attempt
            self.graph, self.location = "", record.location
        elif isinstance(record, GraphBreak | Recompile):
            self.compile_id, self.location = record.compile_id, record.location
        elif isinstance(record, CallStart):
            self.stage, self.graph, self.location = "run", "", None
        elif isinstance(record, Graph):
            self.compile_id, self.location = record.compile_id, None
            self.graph = record.id
        elif isinstance(record, StageStart | CacheLookup):
            self.compile_id = record.compile_id or self.compile_id
            self.graph, self.location = record.graph, None
        elif graph := getattr(record, "graph", ""):
            self.graph, self.location = graph, None


@dataclass(slots=True)
class Compile:
    """A frame that is being compiled."""

    id: str
    attempt: int = 0
    lines: list[tuple[str, int, int]] = field(default_factory=list)
    """File, line and frame of the last instruction at each inlining depth."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An instruction, as stepping compares it with later ones."""

    level: int
    """The number of compiles that it is nested in."""
    compile_id: str
    attempt: int
    depth: int
    line: tuple[str, int]
    frame: int = -1
    """`Step.frame`."""

    def same_frame(self, other: Standing) -> bool:
        """Within one attempt and depth; without frame numbers, the depth decides."""
        return -1 in (self.frame, other.frame) or self.frame == other.frame


class Compiles:
    """The frames being compiled, outermost first, and Dynamo's current instruction."""

    def __init__(self) -> None:
        self.open: list[Compile] = []
        self.at: Standing | None = None
        """The last instruction; None before a frame's first instruction and after its end."""

    def starts(self, record: FrameStart) -> None:
        """A frame, or the next attempt at one, starts."""
        known = self._find(record.compile_id)
        if record.attempt == 0 or known is None:
            if known is not None:
                del self.open[known:]
            self.open.append(Compile(record.compile_id, record.attempt))
        else:
            del self.open[known + 1 :]
            self.open[known] = Compile(record.compile_id, record.attempt)

    def ends(self, record: FrameEnd) -> None:
        known = self._find(record.compile_id)
        if known is not None:
            del self.open[known:]
        if self.at is not None and self.at.compile_id == record.compile_id:
            self.at = None

    def forget(self) -> None:
        """A call starts: whatever was open has been abandoned."""
        self.open.clear()
        self.at = None

    def step(self, record: Step) -> bool:
        """Follow an instruction; returns whether Dynamo has just entered its line."""
        known = self._find(record.compile_id)
        if known is None:
            self.open.append(Compile(record.compile_id, record.attempt))
            known = len(self.open) - 1
        del self.open[known + 1 :]
        compile = self.open[known]
        if compile.attempt != record.attempt:
            compile = self.open[known] = Compile(record.compile_id, record.attempt)
        line = (record.location.file, record.location.line)
        place = (*line, record.frame)
        lines = compile.lines
        del lines[record.depth + 1 :]
        lines += [("", 0, -1)] * (record.depth + 1 - len(lines))
        entered = lines[record.depth] != place
        lines[record.depth] = place
        self.at = Standing(
            known, record.compile_id, record.attempt, record.depth, line, record.frame
        )
        return entered

    def _find(self, compile_id: str) -> int | None:
        for index in range(len(self.open) - 1, -1, -1):
            if self.open[index].id == compile_id:
                return index
        return None
