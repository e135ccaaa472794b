"""Frames: what Dynamo compiles, how often it restarts, and how that ends.

`convert_frame._compile` is one compile id; each `trace_frame` inside it is an attempt. A frame's
operation and guard counts are those of torch's own compilation metrics.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal

from msgspec import structs

from tcw.compiler.capture.callers import Caller, caller_of
from tcw.compiler.capture.code_objects import function_location, original_code, resumes_at
from tcw.compiler.capture.messages import one_line
from tcw.compiler.control.hooks import (
    RecordingHook,
    Uninstall,
    before_call,
    patch,
    signature_of,
    undo_all,
)
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import begin_compile, forget_compiles
from tcw.compiler.protocol.error_words import first_line
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import FrameEnd, FrameStart, Location, StageStart

FrameStatus = Literal["compiled", "empty", "skipped", "failed"]

NO_OPS = ("No ops traced for the FX graph", "because no content in function call")
"""Prefixes of torch's reason for skipping a frame in which it traced no tensor operation."""


@dataclass(eq=False)
class Frame:
    """A frame that is being compiled."""

    start: FrameStart
    """The record of its first attempt."""
    code: CodeType
    one_graph: bool
    attempts: int = 0
    ops: int = 0
    guards: int = 0
    skip_reason: str = ""
    """Why Dynamo raised `SkipFrame` while tracing."""
    reason: str = ""
    """Why nothing was compiled; set at the end."""
    raises_on_break: bool = False
    graphs: set[int] = field(default_factory=set)
    """Attempts whose graph is recorded."""
    wall: float = field(default_factory=time.perf_counter)
    """Start time, in seconds of a clock that stops while the recording does its own work."""
    cpu: float = 0.0


FrameListener = Callable[[Frame, BaseException, FrameStatus], None]

on_error: list[FrameListener] = []
"""Called with the exception that ends a frame, before its `FrameEnd` is written."""

_stack: list[Frame] = []
_finished: list[Frame] = []


def current_frame() -> Frame | None:
    """The frame being compiled; the innermost one if compiles nest."""
    return _stack[-1] if _stack else None


def compiles_in_progress() -> int:
    """The number of frames being compiled: more than 1 if one compile starts another."""
    return len(_stack)


def last_finished() -> Frame | None:
    return _finished[-1] if _finished else None


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import convert_frame
    from torch._dynamo.exc import SkipFrame
    from torch._dynamo.metrics_context import MetricsContext

    forget_compiles()
    original_compile = convert_frame._compile
    original_trace = convert_frame.trace_frame
    signature = signature_of(original_compile)

    @functools.wraps(original_compile)
    def _compile(*args: Any, **kwargs: Any) -> Any:
        if recorder.quiet:
            return original_compile(*args, **kwargs)
        outer = (recorder.compile_id, recorder.attempt)
        frame: Frame | None = None
        box = None
        with Safely(recorder, "the start of a frame"):
            bound = signature.bind_partial(*args, **kwargs).arguments
            frame = _start(recorder, bound)
            box = bound.get("convert_frame_box")
        if frame is None:
            return original_compile(*args, **kwargs)
        _stack.append(frame)
        try:
            result = original_compile(*args, **kwargs)
        except BaseException as error:
            with Safely(recorder, "the end of a frame"):
                frame.raises_on_break = bool(getattr(box, "error_on_graph_break", None))
                status, reason = _failed(frame, error)
                for listener in on_error:
                    listener(frame, error, status)
                _end(recorder, frame, status, reason)
            raise
        else:
            with Safely(recorder, "the end of a frame"):
                guarded = getattr(result, "guarded_code", None) is not None
                _end(recorder, frame, *_returned(frame, result, guarded))
                if guarded:
                    recorder.compiled_in_call.append(frame.start.compile_id)
                    if compiles_in_progress() == 1:  # its code runs now
                        recorder.emit(StageStart(stage="run", compile_id=frame.start.compile_id))
            return result
        finally:
            _stack.remove(frame)
            _finished[:] = [frame]
            recorder.compile_id, recorder.attempt = outer

    @functools.wraps(original_trace)
    def trace_frame(*args: Any, **kwargs: Any) -> Any:
        frame = current_frame()
        if frame is not None and not recorder.quiet:
            with Safely(recorder, "an attempt at a frame"):
                frame.attempts += 1
                frame.skip_reason = ""
                recorder.attempt = frame.attempts - 1
                if recorder.attempt:
                    attempt = structs.replace(frame.start, attempt=recorder.attempt, at=0.0)
                    recorder.emit(attempt)
        try:
            return original_trace(*args, **kwargs)
        except SkipFrame as skip:
            if frame is not None:
                frame.skip_reason = str(skip)
            raise

    def counted(_context: Any, values: Any, *_: Any, **__: Any) -> None:
        frame = current_frame()
        if frame is not None and "graph_op_count" in values:
            frame.ops = values["graph_op_count"] or 0
            frame.guards = values.get("guard_count") or 0

    return undo_all(
        _finished.clear,
        _stack.clear,
        patch(convert_frame, "_compile", _compile),
        patch(convert_frame, "trace_frame", trace_frame),
        before_call(MetricsContext, "update_outer", counted),
    )


def _start(recorder: Recorder, bound: dict[str, Any]) -> Frame:
    code: CodeType = bound["code"]
    start = FrameStart(
        compile_id=begin_compile(bound["compile_id"], recorder.starts),
        attempt=0,
        function=user_name(code.co_name),
        location=function_location(code),
        call=recorder.call,
        resumes_at=resumes_at(code),
        wrapped=_wrapped(code, caller_of(code, bound.get("locals") or {})),
    )
    frame = Frame(start, code, bool(bound.get("one_graph")))
    frame.wall -= recorder.aside_seconds
    frame.cpu = recorder.cpu_seconds()
    recorder.compile_id = start.compile_id
    recorder.attempt = 0
    recorder.source(start.location.file)
    if start.wrapped is not None:
        recorder.source(start.wrapped.file)
    recorder.emit(start)
    return frame


def _wrapped(code: CodeType, caller: Caller) -> Location | None:
    """Where the forward is that the frame wraps; None if it wraps none."""
    if caller.code is None or original_code(caller.code) is original_code(code):
        return None
    return function_location(caller.code)


def _returned(frame: Frame, result: Any, guarded: bool) -> tuple[FrameStatus, str]:
    if guarded:
        return ("compiled" if frame.ops else "empty"), ""
    reason = frame.skip_reason or str(getattr(result, "skip_reason", None) or "")
    empty = reason.removeprefix("Dynamo decided to skip the frame while tracing: ")
    return ("empty" if empty.startswith(NO_OPS) else "skipped"), first_line(empty)


def _failed(frame: Frame, error: BaseException) -> tuple[FrameStatus, str]:
    """A break that Dynamo cannot handle skips the frame, unless the user forbade breaks."""
    from torch._dynamo.exc import Unsupported, UserError

    soft = isinstance(error, (Unsupported, UserError))
    if soft and not frame.one_graph and not frame.raises_on_break:
        return "skipped", one_line(error)
    return "failed", one_line(error)


def _end(recorder: Recorder, frame: Frame, status: FrameStatus, reason: str) -> None:
    frame.reason = reason
    recorder.emit(
        FrameEnd(
            compile_id=frame.start.compile_id,
            status=status,
            seconds=round(time.perf_counter() - recorder.aside_seconds - frame.wall, 6),
            cpu_seconds=round(recorder.cpu_seconds() - frame.cpu, 6),
            attempts=max(frame.attempts, 1),
            reason=reason,
            ops=frame.ops,
            guards=frame.guards,
        )
    )


HOOK = RecordingHook(
    name="frames",
    offers="every frame that Dynamo compiles, its restarts, time, operations and guards",
    needs=(
        "torch._dynamo.convert_frame:_compile(code, one_graph, compile_id)",
        "torch._dynamo.convert_frame:trace_frame",
        "torch._dynamo.exc:SkipFrame",
        "torch._dynamo.metrics_context:MetricsContext.update_outer",
        "torch._dynamo.resume_execution:ContinueExecutionCache.generated_code_metadata",
    ),
    install=install,
    stage="capture",
    test="capture/test_frames.py",
)
