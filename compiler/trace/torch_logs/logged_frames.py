"""Compiles: from Dynamo's start of a frame to torch's account of it (`compilation_metrics`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tcw.compiler.trace.compile_names import CompileNames
from tcw.compiler.trace.cudagraph_reasons import reason_of, stack_of
from tcw.compiler.trace.function_names import resumes_at
from tcw.compiler.trace.records import (
    CudagraphRecording,
    CudagraphSkip,
    DynamicSize,
    EagerFallback,
    Failure,
    FrameEnd,
    FrameStart,
    GraphBreak,
    Guards,
    Location,
    Phase,
    Record,
)
from tcw.compiler.trace.refs import digits
from tcw.compiler.trace.source_names import readable
from tcw.compiler.trace.torch_logs.logged_breaks import graph_break
from tcw.compiler.trace.torch_logs.logged_places import LogSources, user_frames

_MOST = 2**63 - 1
_LONGEST = 4000
"""Characters of a message that are kept."""
_SOFT = ("Unsupported", "UserError")
_LIMITS = re.compile(r"(?:recompile|cache(?:_size)?)[ _]limit", re.IGNORECASE)
_RANGE = re.compile(r"^(?:VR)?\[(?P<lower>[^,]+), (?P<upper>[^\]]+)\]$")


class Metrics:
    """torch's account of one compile. A figure out of bounds counts as unknown."""

    def __init__(self, facts: dict[str, Any], compile_id: str, names: CompileNames) -> None:
        """`compile_id`: of the entry, for torch that does not repeat it among the facts."""
        self._facts = facts
        self.compile_id = names.of(self.words("compile_id")) or compile_id
        self.file = self.words("co_filename")
        self.fail_type = self.words("fail_type")
        self.fail_reason = self.words("fail_reason")

    def words(self, name: str) -> str:
        found = self._facts.get(name)
        return found[:_LONGEST] if isinstance(found, str) else ""

    def count(self, name: str, most: int = _MOST) -> int:
        found = self._facts.get(name)
        known = isinstance(found, int) and 0 <= found <= most
        return found if known and isinstance(found, int) else 0

    def seconds(self, name: str, micro: str) -> float:
        """A duration: older torch counts seconds, newer microseconds."""
        for key, unit in ((micro, 1e-6), (name, 1.0)):
            found = self._facts.get(key)
            if isinstance(found, (int, float)) and 0 <= found * unit <= 1e10:
                return round(found * unit, 6)
        return 0.0

    @property
    def of_frame(self) -> bool:
        """Whether it is of a frame: a backward has an account of its own."""
        facts = self._facts
        return facts.get("is_forward") is not False and not facts.get("is_runtime")

    @property
    def start(self) -> float:
        return self.seconds("start_time", "start_time_us")

    @property
    def guarded(self) -> bool:
        return bool(self._facts.get("has_guarded_code"))

    @property
    def suppressed(self) -> bool:
        return bool(self._facts.get("config_suppress_errors"))

    @property
    def restarts(self) -> int:
        found = self._facts.get("restart_reasons")
        return min(len(found), 10_000) if isinstance(found, list) else 0

    @property
    def nested(self) -> list[tuple[str, float]]:
        """Its phases, outermost first, as far as it has their totals."""
        names = (
            ("entire_frame_compile", "entire_frame_compile_time_s", "duration_us"),
            (
                "backend_compile",
                "backend_compile_time_s",
                "aot_autograd_cumulative_compile_time_us",
            ),
            ("inductor_compile", "inductor_compile_time_s", "inductor_cumulative_compile_time_us"),
            (
                "GraphLowering.compile_to_fn",
                "code_gen_time_s",
                "inductor_code_gen_cumulative_compile_time_us",
            ),
        )
        found = [(name, self.seconds(old, new)) for name, old, new in names]
        return [(name, seconds) for name, seconds in found if seconds]


class Frames:
    """The compiles of a log so far."""

    def __init__(self) -> None:
        self.starts: dict[str, FrameStart] = {}
        self.guarded: dict[str, Guards] = {}
        """Guards that are written with the end of their compile, which has their count."""
        self.callers: dict[str, int] = {}
        """Compile -> how many of the user's frames called it."""
        self._attempts: dict[str, int] = {}
        self._ended: set[str] = set()
        self._errors: dict[str, str] = {}
        self._broke: dict[str, str] = {}
        """Compile -> outcome of its last break."""
        self._functions: dict[tuple[str, str], Location] = {}

    def first(self, compile_id: str) -> FrameStart | None:
        """The start of the first compile of this frame."""
        return self.starts.get(compile_id.rpartition("/")[0] + "/0")

    def open(self) -> list[str]:
        """Compiles without an end."""
        return [one for one in self.starts if one not in self._ended]

    def leave(self) -> None:
        """What has begun until now is of another process."""
        self._ended |= self.starts.keys()
        self.guarded.clear()

    def start(
        self, compile_id: str, attempt: int, location: Location, function: str, name: str
    ) -> FrameStart:
        resumed = resumes_at(name)
        own = (location.file, function)
        if resumed is None:
            self._functions.setdefault(own, location)
        record = FrameStart(
            compile_id=compile_id,
            attempt=attempt,
            function=function,
            location=self._functions.get(own, location),
            call=0,
            resumes_at=resumed,
        )
        self.starts.setdefault(compile_id, record)
        self._attempts[compile_id] = max(attempt, self._attempts.get(compile_id, 0))
        return record

    def attempt(self, compile_id: str, number: int) -> FrameStart | None:
        """The start of a further attempt, told by its first entry; None if it is not one."""
        first = self.starts.get(compile_id)
        if first is None or number <= self._attempts[compile_id]:
            return None
        self._attempts[compile_id] = number
        return msgspec.structs.replace(first, attempt=number, at=0.0)

    def failed(self, compile_id: str, text: str) -> None:
        self._errors[compile_id] = text

    def broke(self, record: GraphBreak) -> None:
        self._broke[record.compile_id] = record.outcome

    def end(self, metrics: Metrics, files: LogSources) -> Iterator[Record]:
        """What the account of a compile says: its guards, how it ended, and why."""
        compile_id = metrics.compile_id
        if not metrics.of_frame or compile_id in self._ended:
            return
        self._ended.add(compile_id)
        start = self.starts.get(compile_id)
        count = metrics.count("guard_count")
        guards = self.guarded.pop(compile_id, None)
        if guards is not None:
            yield msgspec.structs.replace(guards, counted=count, at=0.0)
        broken = self._errors.pop(compile_id, "")
        limit = bool(_LIMITS.search(metrics.fail_reason))
        soft = metrics.fail_type.rpartition(".")[2] in _SOFT
        skipped = soft and (self._broke.get(compile_id) == "skip-frame" or limit)
        if soft and not skipped:
            found = graph_break(
                broken or metrics.fail_reason,
                files,
                compile_id,
                self._attempts.get(compile_id, 0),
                start,
                self.callers.get(compile_id, 0),
            )
            at = found.location if found.stack else self._failed_at(metrics) or found.location
            yield msgspec.structs.replace(
                found, outcome="error", location=at, source_line=files.code(at)
            )
        status = "compiled" if metrics.count("graph_op_count") else "empty"
        if metrics.fail_type:
            status = "skipped" if skipped else "failed"
        elif not metrics.guarded and start is not None and not metrics.count("graph_op_count"):
            status = "skipped" if not count else status
        reason = metrics.fail_reason.strip().partition("\n")[0]
        if metrics.fail_type:
            yield from self._why(metrics, start, files, limit, soft and skipped)
        yield FrameEnd(
            compile_id=compile_id,
            status=status,  # type: ignore[arg-type]
            seconds=metrics.seconds("entire_frame_compile_time_s", "duration_us"),
            attempts=max(metrics.restarts, self._attempts.get(compile_id, 0)) + 1,
            reason=reason,
            ops=metrics.count("graph_op_count"),
            guards=count,
        )

    def _why(
        self, metrics: Metrics, start: FrameStart | None, files: LogSources, limit: bool, soft: bool
    ) -> Iterator[Record]:
        reason = metrics.fail_reason.strip().partition("\n")[0]
        location = self._failed_at(metrics) or (start.location if start else None)
        if limit or metrics.suppressed:
            yield EagerFallback(
                reason=reason,
                kind="recompile-limit" if limit else "suppressed-error",
                compile_id=metrics.compile_id,
                function=start.function if start else "",
                location=location,
            )
        elif not soft:
            yield Failure(
                doing=f"capture of {metrics.compile_id}",
                type=metrics.fail_type,
                message=metrics.fail_reason,
                compile_id=metrics.compile_id,
                location=location,
                source_line=files.code(location) if location else "",
                culprit="user",
            )

    @staticmethod
    def _failed_at(metrics: Metrics) -> Location | None:
        file, line = metrics.words("fail_user_frame_filename"), "fail_user_frame_lineno"
        return Location(file=file, line=metrics.count(line, 2**31 - 1)) if file else None


def dynamic_size(data: Any) -> DynamicSize | None:
    """A symbolic size from torch's creation of its symbol."""
    if not isinstance(data, dict):
        return None
    symbol, source = data.get("symbol"), data.get("source")
    if not isinstance(symbol, str) or not isinstance(source, str):
        return None
    bounds = _RANGE.match(str(data.get("vr", "")))
    return DynamicSize(
        symbol=symbol[:200],
        name=readable(source[:2000]),
        source=source[:2000],
        value=_figure(str(data.get("val", ""))),
        lower=_figure(bounds["lower"]) if bounds else None,
        upper=_figure(bounds["upper"]) if bounds else None,
    )


def _figure(text: str) -> int | float | None:
    whole = digits(text.removeprefix("-"))
    if whole is not None:
        return -whole if text.startswith("-") else whole
    try:
        found = float(text) if len(text) < 40 else None
    except ValueError:
        return None
    return found if found is not None and abs(found) < 1e30 else None


_RECORD = "CUDAGraphNode.record"
"""The name of torch's phase (`dynamo_timed_cudagraph` in torch/_inductor/cudagraph_trees.py)."""


def cudagraph_recording(phase: Phase, kind: str) -> CudagraphRecording | None:
    """The recording that this phase timed, of the compile's graph of this kind; None if it timed
    something else."""
    if phase.name != _RECORD:
        return None
    return CudagraphRecording(
        graph=f"{phase.compile_id}/{kind}" if phase.compile_id else "",
        compile_id=phase.compile_id,
        again=None,
        seconds=phase.seconds,
    )


def cudagraph_skip(metrics: Metrics, files: LogSources) -> CudagraphSkip | None:
    """The last skip of a compile, from torch's account of it; None if it has none."""
    message = metrics.words("cudagraph_skip_reason")
    if not message:
        return None
    stack = user_frames(files.traceback(stack_of(message)))
    return CudagraphSkip(
        reason=reason_of(message),
        compile_id=metrics.compile_id,
        location=stack[-1] if stack else None,
    )
