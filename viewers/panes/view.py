"""The reader's place in a recording, from which every pane is computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.trace import refs
from tcw.compiler.trace.matching import is_predicted
from tcw.compiler.trace.provenance import Provenance, Quality
from tcw.compiler.trace.records import (
    Decided,
    Graph,
    Kernel,
    KernelBinary,
    Refused,
    Run,
    Stage,
    Step,
    Waiting,
    WhatIf,
)
from tcw.compiler.trace.refs import Ref
from tcw.viewers.collected import grouped
from tcw.viewers.file_names import FileNames
from tcw.viewers.labels import KernelNames
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.calls import Piece
from tcw.viewers.summary.differences import Difference, difference
from tcw.viewers.summary.engine_comparison import Comparison, compare
from tcw.viewers.summary.function_names import FunctionNames
from tcw.viewers.summary.fusion import PairResult
from tcw.viewers.summary.profile import Profile, profile_of
from tcw.viewers.teaching.predict import Question, Quiz
from tcw.viewers.timeline import Track

if TYPE_CHECKING:
    from tcw.viewers.kit.spans import Role
    from tcw.viewers.panes.profiled import Table
    from tcw.viewers.text.processes import Several

KernelLanguage = Literal["cpp", "triton", "ttir", "ttgir", "llir", "ptx", "sass"]
LANGUAGES: dict[KernelLanguage, str] = {
    "cpp": "C++",
    "triton": "Triton",
    "ttir": "TTIR",
    "ttgir": "TTGIR",
    "llir": "LLIR",
    "ptx": "PTX",
    "sass": "SASS",
}
ShownTimes = Literal["compiled", "eager", "difference"]
VARIANTS = ("captured", "joint", "forward", "backward", "inference", "lowered")


class Derived:
    """A recording with what is derived from it once; rebuilt when the trace has grown."""

    def __init__(
        self, recording: Recording, provenance: Provenance, whole: Recording | None = None
    ) -> None:
        self.recording = recording
        self.provenance = provenance
        self.whole = whole or recording
        """The run, where `recording` is the part of one of its engines."""
        self.trace = self.whole
        """The whole trace, or its beginning: it knows the places of all records."""
        self.of_engines: dict[str, Derived] = {}
        """Engine -> what is derived of its recording, this included; empty with one engine."""
        self._compared: tuple[Derived, int, Difference] | None = None
        self.tables: dict[tuple[str, str, str], Table] = {}
        """(order, phase, filter) -> the regions of the profile so."""
        self.line_times: dict[tuple[str, str], dict[int, tuple[str, Role]]] = {}
        """(file, what times) -> line -> its time in words."""
        self.node_times: dict[str, dict[str, float]] = {}
        """Graph -> node -> seconds of what it is the last node of."""
        self.called = KernelNames(recording)
        self.region_words: dict[str, str] = {}
        """Key of a region -> the words for its filter."""
        self.names = FileNames.for_settings(recording.settings)

    @cached_property
    def split_origins(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """(graph, nodes) that several scheduler nodes with labels of their own compute, as the
        loops of one softmax do."""
        labels: dict[tuple[str, tuple[str, ...]], set[str]] = defaultdict(set)
        for operation in self.recording.operations.values():
            labels[operation.graph, operation.origins].add(operation.label)
        return frozenset(one for one, label in labels.items() if len(label) > 1)

    @cached_property
    def summary(self) -> Summary:
        return summarise(self.recording)

    @cached_property
    def profile(self) -> Profile | None:
        """The call that was measured step by step; None if none was."""
        found = profile_of(self.recording)
        if found is not None:
            found.index.provenance = self.provenance
        return found

    @cached_property
    def comparison(self) -> Comparison | None:
        """The engines lined up, where the trace has two."""
        return compare(self.whole)

    def difference(self, base: Derived) -> Difference:
        """The difference from another run, and the measurements of the two so far."""
        measured = self.trace.all(WhatIf) if base.trace is self.trace else []
        known = self._compared
        if known is not None and known[0] is base and known[1] == len(measured):
            return known[2]
        runs = [derived.recording.last(Run) for derived in (base, self)]
        numbers = tuple(run.number if run else 0 for run in runs)
        about = [what_if for what_if in measured if (what_if.base, what_if.run) == numbers]
        found = difference(base.recording, self.recording, about)
        self._compared = base, len(measured), found
        return found

    @cached_property
    def functions(self) -> FunctionNames:
        """What the compiled functions are called."""
        return FunctionNames(self.whole)

    @cached_property
    def pieces(self) -> dict[str, Piece]:
        """Compile id -> its compile, in the order of the trace."""
        pieces = (piece for call in self.summary.calls for piece in call.pieces)
        return {piece.compile_id: piece for piece in pieces}

    @cached_property
    def graphs_of(self) -> dict[str, list[Graph]]:
        """Compile id -> its graphs, in the order in which they were made."""
        return grouped((graph.compile_id, graph) for graph in self.recording.graphs.values())

    @cached_property
    def pairs(self) -> dict[str, tuple[PairResult, ...]]:
        """Graph -> its fusion pairs, each once."""
        return {graph.graph: graph.pairs for graph in self.summary.fusion.graphs}

    @cached_property
    def binaries(self) -> dict[str, KernelBinary]:
        """Kernel id -> what it was compiled to, the last architecture."""
        return {binary.kernel: binary for binary in self.recording.all(KernelBinary)}

    @cached_property
    def languages(self) -> list[KernelLanguage]:
        """The languages that the recording has kernels in, and what they were compiled to."""
        kernels = self.recording.kernels.values()
        written = {kernel.language for kernel in kernels}
        if not kernels or not all(kernel.generated for kernel in kernels):
            written.add("cpp")
        binaries = self.binaries.values()
        return [
            language
            for language in LANGUAGES
            if language in written
            or (
                language not in ("cpp", "triton")
                and any(getattr(binary, language) for binary in binaries)
            )
        ]

    @cached_property
    def main_file(self) -> str:
        """The file that the reader's code is in."""
        settings, files = self.recording.settings, self.recording.files
        if settings is not None:
            for file in files:
                if file == settings.file or file.endswith("/" + settings.file):
                    return file
        return files[0] if files else (settings.file if settings else "")


@dataclass
class View:
    """A reader's place. Panes read it; only the workbench changes it."""

    derived: Derived
    ref: Ref = ""
    """The selection."""
    compile_id: str = ""
    engine: str = ""
    """The current engine, if the trace has two."""
    lined: int = 0
    """Index of the selected row among the kernels of two engines, and among those that changed
    between two runs."""
    variant: str = ""
    """Kind of graph that is shown; "" for the latest stage that was recorded."""
    kernel: str = ""
    language: KernelLanguage = "cpp"
    raw: bool = False
    """Kernels as generated, not tidied."""
    torch_text: bool = False
    """Show torch's own words in full."""
    finding: int = 0
    site: int = 0
    """Index of the current graph break."""
    effect: int = 0
    """Index of the current difference from the base."""
    cause: int = 0
    """Index of the current cause of recompiles."""
    pair: str = ""
    """Id of the current fusion pair."""
    buffer: str = ""
    """The current buffer of the memory plan."""
    region: str = ""
    """Key of the current region of the profile."""
    phase: str = ""
    """The current phase of a profiled training call; "" for all."""
    region_filter: str = ""
    """List only regions with these words."""
    times: ShownTimes = "compiled"
    """The times next to the source."""
    pair_filter: str = ""
    """List only pairs of nodes whose names have these words."""
    question: Question | None = None
    """The pair on which the reader guesses, or has just guessed."""
    quiz: Quiz | None = None
    """The reader's guesses."""
    presenting: bool = False
    """For an audience: few large panes, no ids."""
    hidden: bool = False
    """The reader is guessing this decision, so no pane may show its outcome."""
    unfolded: set[str] = field(default_factory=set)
    order: str = ""
    scale: int = 0
    """How much a picture of a graph shows: 0 groups, 1 operations, 2 their shapes."""
    weights: bool = False
    """Draw weights in it."""
    listed: bool = False
    """Show a row per node instead of the picture."""
    block: str = ""
    """Key of the current block of the picture."""
    live: bool = False
    """The recording is still being made."""
    playhead: int = 0
    """How many records of the trace are shown; 0 for all."""
    step: Step | None = None
    """The instruction at the playhead; None if there is none."""
    lit: dict[Ref, Quality] = field(default_factory=dict)
    """Counterparts of the selection."""
    run: int = 0
    """The current run; 0 if the trace has none."""
    base: Derived | None = None
    """The run that it is compared with."""
    track: Track = field(default_factory=Track)
    """The whole trace in time, records after the playhead included."""
    driven: bool = False
    """Whether a worker compiles for this reader and takes commands."""
    in_page: bool = False
    """The screens go into an exported page, which has few of the workbench's keys (`page.js`), so
    no row may mention the others."""
    overrides: dict[str, str] = field(default_factory=dict)
    """Decision id -> choice, as the reader wants them in the next run."""
    kept: dict[str, str] = field(default_factory=dict)
    """The overrides that the reader keeps: a what-if is compared with a run of these."""
    breakpoints: tuple[Breakpoint, ...] = ()
    several: Several | None = None
    """The processes of the folder that this recording is in; None if it was opened alone."""
    beside: frozenset[str] = frozenset()
    """The panes on the screen."""

    def select(self, ref: Ref) -> None:
        self.ref = ref
        self.lit = self.derived.provenance.counterparts(ref) if ref else {}

    def light(self, things: Iterable[Ref]) -> None:
        """Select several things together, such as both halves of a pair."""
        self.ref = ""
        self.lit = {}
        for thing in things:
            for ref, quality in self.derived.provenance.counterparts(thing).items():
                if self.lit.get(ref) != "exact":
                    self.lit[ref] = quality

    @property
    def recording(self) -> Recording:
        return self.derived.recording

    @property
    def compares_traces(self) -> bool:
        """Whether the base is another trace."""
        return self.base is not None and self.base.trace is not self.derived.trace

    @property
    def shown(self) -> int:
        """How many records of the trace are shown."""
        return self.playhead or self.track.count

    @property
    def waiting(self) -> Waiting | None:
        """Where the compile is stopped, at this place in time."""
        return self.track.waiting(self.shown)

    @property
    def over(self) -> bool:
        """Whether the current compile has ended: the recording, or a driven run of it."""
        waiting = self.waiting
        return self.recording.end is not None or (waiting is not None and waiting.kind == "end")

    @property
    def asked(self) -> Decided | None:
        """The decision that waits for an answer."""
        waiting = self.waiting
        if waiting is None or not waiting.decision:
            return None
        return self.recording.decisions.asked.get(waiting.decision)

    @property
    def refused(self) -> Refused | None:
        """The answer to the waiting decision that a rule forbade, if one was tried."""
        asked, refused = self.asked, self.recording.last(Refused)
        if asked is None or refused is None or refused.id != asked.id or refused.at < asked.at:
            return None
        return refused

    @property
    def summary(self) -> Summary:
        return self.derived.summary

    def not_reached(self, stage: Stage) -> str:
        """Why the recording has nothing of a stage, and how to record it; "" if it has."""
        recording = self.recording
        until = recording.settings.until if recording.settings else "run"
        stages = get_args(Stage)
        if stages.index(until) < stages.index(stage):
            return f"recorded until {until}: --until {stage} goes on to here"
        if recording.end is None:
            return "not reached yet" if self.live else "the recording ended before"
        return ""

    @property
    def piece(self) -> Piece | None:
        return self.derived.pieces.get(self.compile_id)

    def variants(self) -> list[Graph]:
        """The graphs of this compile that the reader can switch between."""
        return self.derived.graphs_of.get(self.compile_id, [])

    def graph(self) -> Graph | None:
        """The graph that is shown."""
        graphs = self.variants()
        for graph in graphs:
            if graph.id == self.variant or variant_of(graph) == self.variant:
                return graph
        ranked = [g for g in graphs if "backward" not in g.id] or graphs
        ranked = [g for g in ranked if is_predicted(g.id) == self.predicted] or ranked
        order = {kind: index for index, kind in enumerate(VARIANTS)}
        return max(ranked, key=lambda graph: order[graph.kind], default=None)

    def loop_graph(self) -> str:
        """The graph whose scheduler and memory records are shown: the lowered forward."""
        known = [g.id for g in self.variants() if g.id in self.derived.pairs]
        forward = [name for name in known if "backward" not in name]
        if "backward" in self.variant:
            forward = [name for name in known if "backward" in name] or forward
        chosen = forward or known
        if chosen:
            return next(
                (name for name in chosen if is_predicted(name) == self.predicted), chosen[0]
            )
        prefix = self.compile_id + "/"
        return next((name for name in self.derived.pairs if name.startswith(prefix)), "")

    @property
    def for_gpu(self) -> bool:
        """Whether the recording is for a GPU."""
        settings = self.recording.settings
        return settings is not None and settings.device == "cuda"

    @property
    def predicted(self) -> bool:
        """Whether the kernels shown are predicted for a GPU."""
        return self.language != "cpp"

    def kernels(self) -> list[Kernel]:
        """Kernels of this compile in the language that is shown, with the calls between."""
        found = self.recording.kernels_of.get(self.compile_id, [])
        wanted = "cpp" if self.language == "cpp" else "triton"
        predicted = {kernel.predicted for kernel in found if kernel.language == wanted} or {False}
        return [
            kernel
            for kernel in found
            if kernel.language == wanted or not kernel.generated
            if kernel.predicted in predicted
        ]

    def kernels_of_graph(self) -> list[Kernel]:
        """The kernels of the graph shown; of a captured or joint graph, all."""
        kernels, graph = self.kernels(), self.graph()
        if graph is None or graph.kind in ("captured", "joint"):
            return kernels
        backward = "backward" in graph.id
        return [kernel for kernel in kernels if ("backward" in kernel.graph) == backward]

    def shown_kernel(self) -> Kernel | None:
        """The chosen kernel; else the first with most counterparts of the selection."""
        kernels = self.kernels()
        for kernel in kernels:
            if kernel.id == self.kernel:
                return kernel
        kernels = self.kernels_of_graph() or kernels
        written = [kernel for kernel in kernels if kernel.text]
        return next(iter(written or kernels), None)

    def lit_lines(self, kernel: Kernel) -> int:
        """How many lines of a kernel are counterparts; a call counts as one."""
        lit = sum(refs.kernel(kernel.id, line.line) in self.lit for line in kernel.lines)
        return lit or int(refs.kernel(kernel.id) in self.lit)


def variant_of(graph: Graph) -> str:
    """The name of a graph in its compile: `captured`, `lowered`, `backward lowered`, …"""
    rest = graph.id.removeprefix(graph.compile_id).strip("/").replace("/", " ")
    return "lowered" if rest in ("forward lowered", "inference lowered") else rest or "captured"
