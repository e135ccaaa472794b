"""The object of `--json`, of any verb: what other programs rely on (docs/json.md).

`VERSION` is raised when a key is taken away or changes its meaning; new keys do not raise it. A
number that was not measured is null, and so is one that JSON cannot carry (nan, infinity).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from compiler.trace.records import Advice, End, Numerics, Recompile, Speed
from viewers.json_profile import mode_items, profile_items, trial_items
from viewers.json_profile_items import Item, ModeItem, ProfileItem, TrialItem
from viewers.json_text import json_text
from viewers.recording import Recording
from viewers.summary import BreakSite, KernelRow, Summary, summarise
from viewers.summary.breaks import ordered_advice
from viewers.summary.engines import compare
from viewers.summary.recompiles import RecompiledFrame

VERSION = 1

ReportStatus = Literal[
    "ok", "failed", "timeout", "crashed", "interrupted", "exited", "incomplete", "usage", "internal"
]


class GraphItem(Item):
    """A graph that Dynamo captured."""

    id: str
    compile_id: str
    ops: int
    """Nodes that compute: torch's own op count."""


class BreakItem(Item):
    """A graph break; distinct by file, line and code."""

    file: str
    line: int
    gb: str
    """torch's code, `GB0170`; "" where this torch has none for the type."""
    type: str
    reason: str
    """torch's words, their first line."""
    fix: str
    """Code to paste where there is some, else a sentence; "" where we know none."""
    count: int
    """Compiles in which it happened."""


class FrameItem(Item):
    """A compile of a frame that has guards."""

    compile_id: str
    guards: int


class RecompileItem(Item):
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


class SourceLine(Item):
    file: str
    line: int


class KernelItem(Item):
    """A generated kernel or a library call."""

    id: str
    engine: str
    language: Literal["cpp", "triton", "aten"]
    name: str
    origins: list[str]
    """Nodes of the lowered graph that it computes."""
    lines: list[SourceLine]
    """User lines that it comes from."""
    predicted: bool
    """Generated for a GPU that was not there."""


class FusionItem(Item):
    """Pairs of scheduler nodes, each counted once however often it was tested."""

    fused: int
    rejected: dict[str, int]
    """Rule -> pairs."""


class CacheItem(Item):
    cache: str
    hits: int
    misses: int
    bypasses: int
    missed: list[str]
    """Distinct reasons of misses and bypasses."""


class PhaseItem(Item):
    name: str
    count: int
    seconds: float
    """With the phases inside it."""
    self_seconds: float
    """Without them and without build threads: these add up."""
    beside_seconds: float
    """Own time on threads that build kernels beside the compile."""


class SpeedItem(Item):
    eager_ms: float
    compiled_ms: float
    speedup: float
    """Median of eager/compiled, pair by pair."""
    noise: float
    """Relative: a speed-up within 1 ± noise is none."""
    compile_s: float


class NumericsItem(Item):
    max_abs: float | None
    max_rel: float | None
    note: str = ""


class EngineItem(Item):
    """One engine of a recording of both."""

    engine: str
    speed: SpeedItem | None
    numerics: NumericsItem | None
    loop_nests: int | None
    """Groups of fused loops, all graphs together; null where fusion was not reached."""
    library_calls: int
    peak_bytes: int | None
    """The highest of its graphs' planned peaks."""
    fusion: FusionItem
    caches: list[CacheItem]
    phases: list[PhaseItem]


class ComparisonItem(Item):
    """Two engines, timed in the same rounds."""

    first: str
    second: str
    first_ms: float
    second_ms: float
    speedup: float
    """Median of first/second, round by round: above 1 the second is faster."""
    noise: float


class ErrorItem(Item):
    """Why there is no more than this."""

    type: str
    """Class of the exception, name of the signal, or the status."""
    message: str
    doing: str
    file: str
    line: int | None
    hint: str
    eager_fails: bool | None
    """Whether eager fails as well; null where that was not tried."""
    culprit: Literal["user", "torch", "tcw", "machine"]
    evidence: str = ""
    """The line that shows the machine to be the cause; "" where it is not known."""


class Report(Item):
    """The whole object."""

    version: int
    status: ReportStatus
    defaults_from: str
    """The pyproject.toml that set what the command line left alone; "" where none set any."""
    error: ErrorItem | None
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
    one = _report(next(iter(recording.engines.values()), recording))
    if comparison is None:
        return one
    parts = [_report(column.recording) for column in comparison.columns]
    failed = next((part for part in parts if part.error is not None), one)
    speed = comparison.speed
    whole: Report = msgspec.structs.replace(
        one,
        status=failed.status,
        error=failed.error,
        kernels=[kernel for part in parts for kernel in part.kernels],
        engines=[
            EngineItem(
                engine=column.engine,
                speed=part.speed,
                numerics=part.numerics,
                loop_nests=column.loop_nests,
                library_calls=column.calls,
                peak_bytes=column.peak_bytes,
                fusion=part.fusion,
                caches=part.caches,
                phases=part.phases,
            )
            for column, part in zip(comparison.columns, parts, strict=True)
        ],
        comparison=ComparisonItem(
            first=speed.first,
            second=speed.second,
            first_ms=speed.first_ms,
            second_ms=speed.second_ms,
            speedup=speed.speedup,
            noise=speed.noise,
        )
        if speed
        else None,
        profiles=profile_items(recording),
        modes=mode_items(recording),
        trials=trial_items(recording),
    )
    return whole


def _report(recording: Recording) -> Report:
    """The report of one engine."""
    summary = summarise(recording)
    order = {id(record): index for index, record in enumerate(recording.all(Recompile))}
    return Report(
        version=VERSION,
        status=_status(summary),
        defaults_from=summary.settings.defaults_from if summary.settings else "",
        error=_error(summary),
        graphs=[
            GraphItem(id=graph.id, compile_id=graph.compile_id, ops=graph.ops)
            for graph in recording.graphs.values()
            if graph.kind == "captured"
        ],
        breaks=[_break(site) for site in summary.breaks],
        frames=_frames(summary),
        recompiles=[
            _recompile(frame)
            for frame in sorted(
                (frame for cause in summary.recompiles for frame in cause.frames),
                key=lambda frame: order[id(frame.record)],
            )
        ],
        kernels=[_kernel(row, summary) for row in summary.kernels.rows],
        fusion=FusionItem(fused=summary.fusion.fused, rejected=summary.fusion.rejected),
        caches=[
            CacheItem(
                cache=use.cache,
                hits=use.hits,
                misses=use.misses,
                bypasses=use.bypasses,
                missed=list(use.missed),
            )
            for use in summary.caches
        ],
        phases=[
            PhaseItem(
                name=one.name,
                count=one.count,
                seconds=round(one.seconds, 6),
                self_seconds=round(one.self_seconds, 6),
                beside_seconds=round(one.beside_seconds, 6),
            )
            for one in summary.phases
        ],
        speed=_speed(summary.speed) if summary.speed else None,
        numerics=_numerics(summary.numerics) if summary.numerics else None,
        engines=[],
        comparison=None,
        profiles=profile_items(recording),
        modes=mode_items(recording),
        trials=trial_items(recording),
    )


def failed_report(
    status: ReportStatus, kind: str, message: str, culprit: Literal["user", "tcw"] = "user"
) -> Report:
    """The report where nothing could be recorded at all."""
    empty = report(Recording())
    error = ErrorItem(
        type=kind,
        message=message,
        doing="",
        file="",
        line=None,
        hint="",
        eager_fails=None,
        culprit=culprit,
    )
    return msgspec.structs.replace(empty, status=status, error=error)


def encode(one: Report) -> str:
    """The report as indented JSON with a newline at its end; always valid, whatever it holds."""
    return json_text(one)


def schema() -> dict[str, Any]:
    """JSON Schema of `Report`."""
    found = msgspec.json.schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"tcw --json, version {VERSION}",
        **found,
    }


def _status(summary: Summary) -> ReportStatus:
    if summary.status in ("ok", "exited") and summary.failure is not None:
        return "failed"
    status: ReportStatus = summary.end.status if summary.end else "incomplete"
    return status


def _error(summary: Summary) -> ErrorItem | None:
    failure, end = summary.failure, summary.end
    if failure is not None:
        place = failure.location
        return ErrorItem(
            type=failure.type,
            message=failure.message,
            doing=failure.doing,
            file=place.file if place else "",
            line=place.line if place else None,
            hint=failure.hint,
            eager_fails=failure.eager_fails,
            culprit=failure.culprit,
            evidence=failure.evidence,
        )
    if end is not None and end.status in ("ok", "exited"):
        return None
    return ErrorItem(
        type=end.status if end else "incomplete",
        message=_ending(end),
        doing=summary.doing,
        file="",
        line=None,
        hint="",
        eager_fails=None,
        culprit="user",
    )


def _ending(end: End | None) -> str:
    if end is None:
        return "the recording has no end: it was cut off, or is still being written"
    return end.reason or f"{end.status} after {end.seconds:.1f} s"


def _speed(speed: Speed) -> SpeedItem:
    return SpeedItem(
        eager_ms=speed.eager_ms,
        compiled_ms=speed.compiled_ms,
        speedup=speed.speedup,
        noise=speed.noise,
        compile_s=speed.compile_seconds,
    )


def _numerics(numerics: Numerics) -> NumericsItem:
    return NumericsItem(max_abs=numerics.max_abs, max_rel=numerics.max_rel, note=numerics.note)


def _fix(advice: tuple[Advice, ...]) -> str:
    return next((one.code or one.text for one in ordered_advice(advice)), "")


def _break(site: BreakSite) -> BreakItem:
    record = site.records[0]
    return BreakItem(
        file=site.place.file,
        line=site.place.line,
        gb=site.gb,
        type=site.type,
        reason=site.reason or record.explanation,
        fix=_fix(site.advice),
        count=site.count,
    )


def _frames(summary: Summary) -> list[FrameItem]:
    return [
        FrameItem(compile_id=piece.compile_id, guards=piece.guards)
        for call in summary.calls
        for piece in call.pieces
        if piece.guards
    ]


def _recompile(frame: RecompiledFrame) -> RecompileItem:
    record = frame.record
    return RecompileItem(
        compile_id=record.compile_id,
        call=record.call,
        guard=frame.why.guard if frame.why else record.reason,
        expected=frame.change.expected,
        seen=frame.change.seen,
        file=frame.place.file if frame.place else "",
        line=frame.place.line if frame.place else None,
        fix=_fix(frame.advice),
    )


def _kernel(row: KernelRow, summary: Summary) -> KernelItem:
    kernel = row.kernel
    return KernelItem(
        id=kernel.id,
        engine=summary.settings.engine if summary.settings else "inductor",
        language=kernel.language,
        name=kernel.name,
        origins=list(kernel.origins),
        lines=[SourceLine(file=file, line=line) for file, line in row.lines],
        predicted=kernel.predicted,
    )
