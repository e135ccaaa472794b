"""The object of `--json`, of any verb: what other programs rely on (docs/json.md).

`VERSION` is raised when a key is taken away or changes its meaning; new keys do not raise it. A
number that was not measured is null, and so is one that JSON cannot carry (nan, infinity).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tcw.compiler.trace.records import Advice, End, Failure, FixTrial, Recompile
from tcw.viewers.json_profile import (
    ModeItem,
    ProfileItem,
    TrialItem,
    mode_items,
    profile_items,
    trial_items,
)
from tcw.viewers.json_text import JsonItem, placed
from tcw.viewers.recording import Recording
from tcw.viewers.summary import Summary, summarise
from tcw.viewers.summary.breaks import BreakSite, ordered_advice
from tcw.viewers.summary.engine_comparison import compare
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.fixes import safety
from tcw.viewers.summary.kernels import KernelRow
from tcw.viewers.summary.recompiles import RecompiledFrame

VERSION = 1

ReportStatus = Literal[
    "ok", "failed", "timeout", "crashed", "interrupted", "exited", "incomplete", "usage", "internal"
]


class GraphItem(JsonItem):
    """A graph that Dynamo captured."""

    id: str
    compile_id: str
    ops: int
    """Nodes that compute: torch's own op count."""


class BreakItem(JsonItem):
    """A graph break; distinct by file, line and code."""

    file: str
    line: int
    gb: str
    """torch's code, `GB0170`; "" if this torch has none for the type."""
    type: str
    reason: str
    """torch's words, their first line."""
    fix: str
    """Code to paste if there is some, else a sentence; "" if none is known."""
    count: int
    """Compiles in which it happened."""


class TriedItem(JsonItem):
    """What the calls come to without a fix and with it, up to capture."""

    graphs: list[int]
    breaks: list[int]
    compiles: list[int]
    results: Literal["same", "within", "differ", "unknown"]
    """Bit for bit, or within what rounding explains."""
    seconds: float


class FixItem(JsonItem):
    """What to do about a finding."""

    text: str
    code: str
    by: str
    safety: Literal["same results", "changes behaviour", "idea"]
    effect: str
    """How the program behaves otherwise with it; "" for not at all, or unknown."""
    tried: TriedItem | None
    """Null for an idea."""
    patch: str
    """A unified diff of the user's files, from the folder of the file."""
    settings: list[str]
    """Lines that set torch up before anything is compiled."""
    compile: dict[str, bool | str]
    """Options of `torch.compile`, where no file of the user's calls it."""
    before_calls: list[str]
    """Lines to run before each call, with the arguments by name."""


class FindingItem(JsonItem):
    """Something that needs attention; the costliest first."""

    kind: str
    cost: str
    title: str
    file: str
    line: int | None
    fix: FixItem | None
    """The best that was tried and helps, else the best idea."""
    tried: int
    """How many fixes were tried."""
    consequences: list[str]
    """Titles of findings that go away with it."""


class FrameItem(JsonItem):
    """A compile of a frame that has guards."""

    compile_id: str
    guards: int


class RecompileItem(JsonItem):
    """A frame that had to be compiled again, by torch's order."""

    compile_id: str
    call: int
    guard: str
    """torch's text of the condition that failed in the entry that came nearest."""
    expected: str
    seen: str
    file: str
    line: int | None
    fix: str


class SourceLine(JsonItem):
    file: str
    line: int


class KernelItem(JsonItem):
    """A generated kernel, a library call, or random numbers that the engine draws."""

    id: str
    engine: str
    language: Literal["cpp", "triton", "aten", "rng"]
    name: str
    origins: list[str]
    """Nodes of the lowered graph that it computes."""
    lines: list[SourceLine]
    """User lines that it comes from."""
    predicted: bool
    """Generated for a GPU that this machine does not have."""


class FusionItem(JsonItem):
    """Pairs of scheduler nodes, each counted once however often it was tested."""

    fused: int
    rejected: dict[str, int]
    """Rule -> pairs."""


class CacheItem(JsonItem):
    cache: str
    hits: int
    misses: int
    bypasses: int
    missed: list[str]
    """Distinct reasons of misses and bypasses."""


class PhaseItem(JsonItem):
    name: str
    count: int
    seconds: float
    """With the phases inside it."""
    self_seconds: float
    """Without them and without build threads; these add up."""
    beside_seconds: float
    """Own time on threads that build kernels while the compile goes on."""

    def __post_init__(self) -> None:
        self.seconds = round(self.seconds, 6)
        self.self_seconds = round(self.self_seconds, 6)
        self.beside_seconds = round(self.beside_seconds, 6)


class SpeedItem(JsonItem):
    eager_ms: float
    compiled_ms: float
    speedup: float
    """Median of eager/compiled, pair by pair."""
    noise: float
    """Relative: within 1 ± noise it is not a speed-up."""
    compile_seconds: float = msgspec.field(name="compile_s")


class NumericsItem(JsonItem):
    max_abs: float | None
    max_rel: float | None
    note: str = ""


class EngineItem(JsonItem):
    """One engine of a recording of both."""

    engine: str
    speed: SpeedItem | None
    numerics: NumericsItem | None
    loop_nests: int | None
    """Groups of fused loops, all graphs together; null where fusion was not reached."""
    calls: int = msgspec.field(name="library_calls")
    peak_bytes: int | None
    """The highest of its graphs' planned peaks."""
    fusion: FusionItem
    caches: list[CacheItem]
    phases: list[PhaseItem]


class ComparisonItem(JsonItem):
    """Two engines, timed in the same rounds."""

    first: str
    second: str
    first_ms: float
    second_ms: float
    speedup: float
    """Median of first/second, round by round: above 1 the second is faster."""
    noise: float


class ErrorItem(JsonItem):
    """Why there is no more than this."""

    type: str
    """The exception's class, the signal's name, or the status."""
    message: str
    doing: str
    file: str
    line: int | None
    hint: str
    eager_fails: bool | None
    """Whether eager fails as well; null if that was not tried."""
    culprit: Literal["user", "torch", "tcw", "machine"]
    evidence: str = ""
    """The line that shows the machine to be the cause; "" if it is not known."""


class Report(JsonItem):
    """The whole object."""

    version: int
    status: ReportStatus
    defaults_from: str
    """The pyproject.toml that set what the command line did not; "" if none did."""
    error: ErrorItem | None
    findings: list[FindingItem]
    together: TriedItem | None
    """All fixes at once, if there are several."""
    graphs: list[GraphItem]
    breaks: list[BreakItem]
    frames: list[FrameItem]
    recompiles: list[RecompileItem]
    kernels: list[KernelItem]
    fusion: FusionItem
    caches: list[CacheItem]
    phases: list[PhaseItem]
    speed: SpeedItem | None
    numerics: NumericsItem | None
    not_in_log: list[str]
    """Kinds of facts that torch's log does not contain; an empty list of them here means unknown.
    Empty for a trace that tcw recorded."""
    engines: list[EngineItem]
    """Of a recording of both engines; the rest is then that of the first, but for the kernels,
    which are of both."""
    comparison: ComparisonItem | None
    profiles: list[ProfileItem]
    """Of `tcw profile`: one of each engine that was profiled."""
    modes: list[ModeItem]
    trials: list[TrialItem]


def report(recording: Recording) -> Report:
    """The report of a recording, whole or cut off."""
    comparison = compare(recording)
    if comparison is None:
        return _report(next(iter(recording.engines.values()), recording))
    parts = [_report(column.recording) for column in comparison.columns]
    failed = next((part for part in parts if part.error is not None), parts[0])
    return msgspec.structs.replace(
        parts[0],
        status=failed.status,
        error=failed.error,
        kernels=[kernel for part in parts for kernel in part.kernels],
        engines=[
            EngineItem.of(
                column,
                speed=part.speed,
                numerics=part.numerics,
                fusion=part.fusion,
                caches=part.caches,
                phases=part.phases,
            )
            for column, part in zip(comparison.columns, parts, strict=True)
        ],
        comparison=ComparisonItem.of(comparison.speed) if comparison.speed else None,
        profiles=profile_items(recording),
        modes=mode_items(recording),
        trials=trial_items(recording),
    )


def _report(recording: Recording) -> Report:
    """The report of one engine."""
    summary = summarise(recording)
    order = {id(record): index for index, record in enumerate(recording.all(Recompile))}
    return Report.of(
        summary,
        version=VERSION,
        status=_status(summary),
        defaults_from=summary.settings.defaults_from if summary.settings else "",
        error=_error(summary),
        findings=[_finding(finding) for finding in summary.findings],
        together=next(
            (_tried(trial) for trial in recording.all(FixTrial) if not trial.finding), None
        ),
        graphs=[graph for graph in recording.graphs.values() if graph.kind == "captured"],
        breaks=[_break(site) for site in summary.breaks],
        frames=[piece for call in summary.calls for piece in call.pieces if piece.guards],
        recompiles=[
            _recompile(frame)
            for frame in sorted(
                (frame for cause in summary.recompiles for frame in cause.frames),
                key=lambda frame: order[id(frame.record)],
            )
        ],
        kernels=[_kernel(row, summary) for row in summary.kernels.rows],
        engines=[],
        comparison=None,
        profiles=profile_items(recording),
        modes=mode_items(recording),
        trials=trial_items(recording),
    )


def failed_report(
    status: ReportStatus,
    kind: str,
    message: str,
    culprit: Literal["user", "tcw", "machine"] = "user",
) -> Report:
    """The report if nothing could be recorded."""
    failure = Failure(doing="", type=kind, message=message, culprit=culprit)
    return msgspec.structs.replace(report(Recording()), status=status, error=_failed(failure))


def _status(summary: Summary) -> ReportStatus:
    if summary.status in ("ok", "exited") and summary.failure is not None:
        return "failed"
    status: ReportStatus = summary.end.status if summary.end else "incomplete"
    return status


def _error(summary: Summary) -> ErrorItem | None:
    failure, end = summary.failure, summary.end
    if failure is not None:
        return _failed(failure)
    if end is not None and end.status in ("ok", "exited"):
        return None
    ending = end.status if end else "incomplete"
    return _failed(Failure(doing=summary.doing, type=ending, message=_ending(end)))


def _failed(failure: Failure) -> ErrorItem:
    return ErrorItem.of(failure, **placed(failure.location))


def _ending(end: End | None) -> str:
    if end is None:
        return "the recording has no end: it was cut off, or is still being written"
    return end.reason or f"{end.status} after {end.seconds:.1f} s"


def _fix(advice: tuple[Advice, ...]) -> str:
    return next((one.code or one.text for one in ordered_advice(advice)), "")


def _finding(finding: Finding) -> FindingItem:
    return FindingItem.of(
        finding,
        **placed(finding.place),
        fix=_fix_item(finding),
        tried=len(finding.trials),
        consequences=[consequence.title for consequence in finding.consequences],
    )


def _fix_item(finding: Finding) -> FixItem | None:
    trial = finding.fix
    if trial is None:
        idea = next(iter(finding.fixes), None)
        trial = FixTrial(finding=finding.key, advice=idea) if idea is not None else None
    if trial is None:
        return None
    return FixItem.of(
        trial.advice,
        safety=safety(trial),
        effect=trial.effect,
        tried=_tried(trial) if trial.kept else None,
        patch=trial.patch,
        settings=list(trial.settings),
        compile=trial.compile,
        before_calls=list(trial.before_calls),
    )


def _tried(trial: FixTrial) -> TriedItem | None:
    before, after = trial.before, trial.after
    if before is None or after is None:
        return None
    return TriedItem(
        graphs=[before.graphs, after.graphs],
        breaks=[before.breaks, after.breaks],
        compiles=[before.compiles, after.compiles],
        results=trial.results,
        seconds=trial.seconds,
    )


def _break(site: BreakSite) -> BreakItem:
    return BreakItem.of(
        site,
        **placed(site.place),
        reason=site.reason or site.records[0].explanation,
        fix=_fix(site.advice),
    )


def _recompile(frame: RecompiledFrame) -> RecompileItem:
    return RecompileItem.of(
        frame,
        guard=frame.why.guard if frame.why else frame.record.reason,
        expected=frame.change.expected,
        seen=frame.change.seen,
        **placed(frame.place),
        fix=_fix(frame.advice),
    )


def _kernel(row: KernelRow, summary: Summary) -> KernelItem:
    return KernelItem.of(
        row.kernel,
        engine=summary.settings.engine if summary.settings else "inductor",
        lines=[SourceLine(file=file, line=line) for file, line in row.lines],
    )
