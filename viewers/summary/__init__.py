"""What a recording says, computed once for the text, the JSON and the terminal workbench.

Pure functions of a `Recording`, one file per topic. Texts in a summary may contain the user's own
words: whoever shows them escapes them (`tcw.viewers.plain`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tcw.compiler.trace.compile_names import RESET
from tcw.compiler.trace.records import (
    End,
    Environment,
    Failure,
    FrameSkipped,
    FrameStart,
    Numerics,
    Settings,
    Speed,
    Warned,
)
from tcw.compiler.trace.records.session import FactKind
from tcw.viewers.collected import known_sum
from tcw.viewers.file_names import FileNames
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import VIOLATION, BreakSite, break_sites
from tcw.viewers.summary.caches import CacheUse, cache_uses
from tcw.viewers.summary.calls import ModelCall, calls_of, first_cut_call, gpu_of
from tcw.viewers.summary.cudagraphs import CudagraphUse, cudagraph_uses
from tcw.viewers.summary.findings import Finding, findings_of
from tcw.viewers.summary.fusion import FusionSummary, fusion_summary
from tcw.viewers.summary.kernels import KernelSummary, kernel_summary
from tcw.viewers.summary.phases import PhaseTime, StageTime, phase_times, stage_times
from tcw.viewers.summary.recompiles import RecompileCause, recompile_causes
from tcw.viewers.summary.verdict import Verdict, doing, verdict_of
from tcw.viewers.words import plural


@dataclass(frozen=True)
class Summary:
    """Everything that the overview and `tcw explain` show."""

    settings: Settings | None
    not_in_log: tuple[FactKind, ...]
    """Kinds of facts that are missing from the log it was read from; () for a trace of ours."""
    script: bool
    """Whether the file calls torch.compile itself."""
    environment: Environment | None
    gpu: str
    """Name of the GPU that the calls ran on; "" if they ran on none."""
    status: str
    """How the recording ended; `incomplete` without an end record (so far)."""
    verdict: Verdict
    calls: tuple[ModelCall, ...]
    cut: ModelCall | None
    """The call that best shows the split into graphs: the first that compiled anything."""
    findings: tuple[Finding, ...]
    """Ranked by measured cost."""
    graphs: int
    """Frames that captured a graph; a frame compiled three times is one."""
    compiles: int
    """Captured graphs, recompiles included."""
    guards: int
    """Guards of the first compile of each frame."""
    breaks: tuple[BreakSite, ...]
    recompiles: tuple[RecompileCause, ...]
    skipped: tuple[FrameSkipped, ...]
    fusion: FusionSummary
    kernels: KernelSummary
    phases: tuple[PhaseTime, ...]
    stages: tuple[StageTime, ...]
    """Compile time by stage; the parts add up."""
    caches: tuple[CacheUse, ...]
    cudagraphs: tuple[CudagraphUse, ...]
    """CUDA graphs that were recorded."""
    speed: Speed | None
    numerics: Numerics | None
    failure: Failure | None
    warnings: tuple[Warned, ...]
    end: End | None
    doing: str
    """The last reported stage and activity: `build: building 12 kernels`."""

    @cached_property
    def names(self) -> FileNames:
        """Short file names, relative to the recorded file."""
        return FileNames.for_settings(self.settings)

    @property
    def missing(self) -> list[str]:
        """What an option asked for but the recording lacks: shown before what it has."""
        return list(dict.fromkeys(warned.message for warned in self.warnings if warned.asked))

    @property
    def recompile_seconds(self) -> float | None:
        """Seconds of all recompiles; None if there are none, or none has ended."""
        return known_sum(cause.seconds for cause in self.recompiles)


def summarise(recording: Recording) -> Summary:
    """Summarize a recording, complete or still growing."""
    breaks = break_sites(recording)
    causes = recompile_causes(recording)
    calls = calls_of(recording)
    pieces = [piece for call in calls for piece in call.pieces]
    captured = [graph for graph in recording.graphs.values() if graph.kind == "captured"]
    frames = {graph.compile_id.partition("/")[0] for graph in captured}
    graphs = len(frames)
    end = recording.end
    return Summary(
        settings=recording.settings,
        not_in_log=recording.lacking,
        script=recording.script,
        environment=recording.environment,
        gpu=gpu_of(recording),
        status=end.status if end else "incomplete",
        verdict=verdict_of(recording, graphs),
        calls=calls,
        cut=first_cut_call(calls),
        findings=findings_of(recording, breaks, causes),
        graphs=graphs,
        compiles=len(captured),
        guards=sum(piece.guards for piece in pieces if not piece.recompiles),
        breaks=tuple(site for site in breaks if site.type != VIOLATION),
        recompiles=causes,
        skipped=tuple(recording.all(FrameSkipped)),
        fusion=fusion_summary(recording),
        kernels=kernel_summary(recording),
        phases=phase_times(recording),
        stages=stage_times(recording),
        caches=cache_uses(recording),
        cudagraphs=cudagraph_uses(recording),
        speed=recording.speed,
        numerics=recording.numerics,
        failure=recording.failure,
        warnings=(*_reset_notes(recording), *recording.all(Warned)),
        end=end,
        doing=now.text if (now := doing(recording)) is not None else "",
    )


def _reset_notes(recording: Recording) -> tuple[Warned, ...]:
    """Explains the names of compiles after `torch._dynamo.reset()`; () if there was none."""
    generator = (RESET.match(start.compile_id) for start in recording.all(FrameStart))
    resets = max((int(match["resets"]) for match in generator if match), default=0)
    if not resets:
        return ()
    message = (
        f"torch._dynamo.reset() restarted torch's compile ids {plural(resets, 'time')}: "
        "r1.0/0 is the 0/0 after the first reset"
    )
    return (Warned(message=message),)
