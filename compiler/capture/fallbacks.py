"""Code that runs eagerly after all: recompile limits, suppressed errors, disabled functions."""

from __future__ import annotations

import re
from typing import Literal

from tcw.compiler.capture.frames import Frame, FrameStatus, on_error
from tcw.compiler.capture.graph_breaks import RECOMPILE_LIMITS, on_break
from tcw.compiler.capture.messages import MESSAGES, one_line
from tcw.compiler.control.hooks import RecordingHook, Uninstall, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.trace.records import Advice, EagerFallback, GraphBreak, Location
from tcw.compiler.trace.torch_logs.logged_breaks import Message

EagerKind = Literal["recompile-limit", "suppressed-error", "backend", "disabled"]

_FUNCTION = re.compile(r"<(?:bound method|function|built-in function) ([\w.<>]+)")


_KEPT = "functions left to Python"

_SUPPRESSED = (
    Advice(
        text="Let the error propagate to see it in full: suppress_errors hides it",
        code="torch._dynamo.config.suppress_errors = False",
    ),
)


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import config
    from torch._dynamo.exc import FailOnRecompileLimitHit

    disabled: set[tuple[str, str, int]] = set()

    def gave_up(
        frame: Frame,
        kind: EagerKind,
        reason: str,
        advice: tuple[Advice, ...],
        location: Location | None = None,
        function: str | None = None,
        stops: bool = False,
    ) -> None:
        """`location`, `function`: of what runs eagerly, if it is not the frame itself."""
        recorder.emit(
            EagerFallback(
                reason=reason,
                kind=kind,
                compile_id=frame.start.compile_id,
                function=frame.start.function if function is None else function,
                location=location or frame.start.location,
                call=recorder.call,
                advice=advice,
                stops=stops,
            )
        )

    def ended(frame: Frame, error: BaseException, status: FrameStatus) -> None:
        with Safely(recorder, "an eager fallback"):
            message = MESSAGES.parts(error)[0]
            if isinstance(error, FailOnRecompileLimitHit):
                message = MESSAGES.parts(error.__cause__ or error)[0]
                gave_up(frame, "recompile-limit", one_line(error), _limit(message)[1:], stops=True)
            elif message.type in RECOMPILE_LIMITS and status == "skipped":
                reason = message.explanation.split(". ")[0] or message.type
                gave_up(frame, "recompile-limit", reason, _limit(message))
            elif (
                status == "failed"
                and config.suppress_errors
                and not frame.one_graph
                and not frame.raises_on_break
                and isinstance(error, Exception)
            ):
                backend = type(error).__name__ == "BackendCompilerFailed"
                kind: EagerKind = "backend" if backend else "suppressed-error"
                gave_up(frame, kind, one_line(error), _SUPPRESSED)

    def broke(frame: Frame, record: GraphBreak) -> None:
        with Safely(recorder, "an eager fallback"):
            _leave(recorder, frame, record)
            if "torch.compiler.disable()" in record.type:
                key = (record.context, record.location.file, record.location.line)
                if key not in disabled:
                    disabled.add(key)
                    match = _FUNCTION.search(record.context)
                    reason, name = record.explanation or record.type, match[1] if match else ""
                    gave_up(frame, "disabled", reason, record.advice, record.location, name)
            elif record.type == "Backend compiler exception":
                gave_up(frame, "backend", record.explanation, record.advice, record.location)

    on_error.append(ended)
    on_break.append(broke)

    return undo_all(lambda: on_error.remove(ended), lambda: on_break.remove(broke))


def _leave(recorder: Recorder, frame: Frame, record: GraphBreak) -> None:
    """Keep the functions that may run eagerly because of a break: a skipped frame, and what the
    frame calls on the way to the break, where torch does not compile it by itself."""
    kept = recorder.kept.setdefault(_KEPT, {})
    assert isinstance(kept, dict)
    if record.outcome == "skip-frame":
        start = frame.start
        whole = start.location
        for (file, line), (function, _) in list(kept.items()):
            inside = whole.line <= line <= (whole.end_line or whole.line)
            if (file, function) == (whole.file, start.function) and inside:
                del kept[file, line]
        kept[start.location.file, start.location.line] = start.function, start.location
    elif record.outcome == "break":
        for place in record.stack[1:]:
            kept.setdefault((place.file, place.line), (place.function, place))


def left_to_python(recorder: Recorder) -> list[tuple[str, Location]]:
    """The functions that may run eagerly, each with a place inside it, since this was asked."""
    kept = recorder.kept.pop(_KEPT, {})
    return list(kept.values()) if isinstance(kept, dict) else []


def _limit(message: Message) -> tuple[Advice, ...]:
    name = message.context.removeprefix("Limit type: ").strip() or "recompile_limit"
    return (
        Advice(text="Fix the causes of its recompiles; the versions compiled so far stay in use"),
        Advice(
            text="If every version is worth its compile time, raise the limit",
            code=f"torch._dynamo.config.{name} = 64",
        ),
    )


HOOK = RecordingHook(
    name="eager fallbacks",
    offers="what runs eagerly after all: recompile limits, hidden errors, disabled functions",
    needs=(
        "torch._dynamo.config:suppress_errors",
        "torch._dynamo.exc:FailOnRecompileLimitHit",
    ),
    install=install,
    stage="capture",
    test="capture/test_fallbacks.py",
)
