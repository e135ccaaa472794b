"""Code that runs eagerly after all: recompile limits, suppressed errors, disabled functions."""

from __future__ import annotations

import re

from compiler.capture.frames import Frame, FrameStatus, on_error
from compiler.capture.graph_breaks import RECOMPILE_LIMITS, on_break
from compiler.capture.messages import MESSAGES, Message, in_short
from compiler.control.hooks import RecordingHook, Uninstall
from compiler.control.recorder import Recorder
from compiler.control.safely import Safely
from compiler.trace.records import Advice, EagerFallback, GraphBreak

_FUNCTION = re.compile(r"<(?:bound method|function|built-in function) ([\w.<>]+)")


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import config

    disabled: set[tuple[str, str, int]] = set()

    def ended(frame: Frame, error: BaseException, status: FrameStatus) -> None:
        with Safely(recorder, "an eager fallback"):
            message = MESSAGES.parts(error)[0]
            if message.type in RECOMPILE_LIMITS and status == "skipped":
                recorder.emit(_limit(recorder, frame, message))
            elif (
                status == "failed"
                and config.suppress_errors
                and not frame.one_graph
                and not frame.raises_on_break
                and isinstance(error, Exception)
            ):
                recorder.emit(_suppressed(recorder, frame, error))

    def broke(frame: Frame, record: GraphBreak) -> None:
        with Safely(recorder, "an eager fallback"):
            if "torch.compiler.disable()" in record.type:
                key = (record.context, record.location.file, record.location.line)
                if key not in disabled:
                    disabled.add(key)
                    recorder.emit(_disabled(recorder, frame, record))
            elif record.type == "Backend compiler exception":
                recorder.emit(_backend(recorder, frame, record))

    on_error.append(ended)
    on_break.append(broke)

    def uninstall() -> None:
        on_error.remove(ended)
        on_break.remove(broke)

    return uninstall


def _limit(recorder: Recorder, frame: Frame, message: Message) -> EagerFallback:
    name = message.context.removeprefix("Limit type: ").strip() or "recompile_limit"
    return EagerFallback(
        reason=message.explanation.split(". ")[0] or message.type,
        kind="recompile-limit",
        compile_id=frame.compile_id,
        function=frame.function,
        location=frame.location,
        call=recorder.call,
        advice=(
            Advice(
                text="Fix the causes of its recompiles; the versions compiled so far stay in use"
            ),
            Advice(
                text="If every version is worth its compile time, raise the limit",
                code=f"torch._dynamo.config.{name} = 64",
            ),
        ),
    )


def _suppressed(recorder: Recorder, frame: Frame, error: Exception) -> EagerFallback:
    """A compile whose error `suppress_errors` hides."""
    backend = type(error).__name__ == "BackendCompilerFailed"
    return EagerFallback(
        reason=in_short(error),
        kind="backend" if backend else "suppressed-error",
        compile_id=frame.compile_id,
        function=frame.function,
        location=frame.location,
        call=recorder.call,
        advice=(
            Advice(
                text="Let the error propagate to see it in full: suppress_errors hides it",
                code="torch._dynamo.config.suppress_errors = False",
            ),
        ),
    )


def _backend(recorder: Recorder, frame: Frame, record: GraphBreak) -> EagerFallback:
    return EagerFallback(
        reason=record.explanation,
        kind="backend",
        compile_id=frame.compile_id,
        function=frame.function,
        location=record.location,
        call=recorder.call,
        advice=record.advice,
    )


def _disabled(recorder: Recorder, frame: Frame, record: GraphBreak) -> EagerFallback:
    match = _FUNCTION.search(record.context)
    return EagerFallback(
        reason=record.explanation or record.type,
        kind="disabled",
        compile_id=frame.compile_id,
        function=match[1] if match else "",
        location=record.location,
        call=recorder.call,
        advice=record.advice,
    )


HOOK = RecordingHook(
    name="eager fallbacks",
    offers="what runs eagerly after all: recompile limits, hidden errors, disabled functions",
    needs=("torch._dynamo.config:suppress_errors",),
    install=install,
    stage="capture",
    test="capture/test_fallbacks.py",
)
