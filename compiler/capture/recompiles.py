"""Recompiles: which guard of each cache entry failed, what it expected and what it saw.

Hooks `get_and_maybe_log_recompilation_reasons` where Dynamo calls it (torch/_dynamo/
convert_frame.py) and `get_guard_fail_reason`, which it calls for each cache entry
(torch/_dynamo/guards.py). torch's own reasons are kept word for word.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from compiler.capture.code import function_location, resumes_at, source_line, user_name
from compiler.capture.failing_entry import Tried, why_not
from compiler.capture.recompile_advice import Changed, advise
from compiler.capture.safely import safely
from compiler.control.hooks import Hook, Uninstall, patch
from compiler.control.recorder import Recorder
from compiler.trace.records import FailedGuard, Recompile


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import convert_frame
    from torch._dynamo import guards as torch_guards

    find_reasons = convert_frame.get_and_maybe_log_recompilation_reasons
    find_reason = torch_guards.get_guard_fail_reason
    searches: list[list[Tried]] = []
    """The entries that did not serve, for each recompile whose reasons torch looks for now."""

    @functools.wraps(find_reasons)
    def finding(*args: Any, **kwargs: Any) -> Any:
        frame = args[1] if len(args) > 1 else kwargs.get("frame")
        # torch 2.11 asks a second time, without logging, for a metric of its own
        unlogged = args[3] if len(args) > 3 else kwargs.get("skip_logging", False)
        if recorder.quiet or unlogged or frame is None:
            return find_reasons(*args, **kwargs)
        tried: list[Tried] = []
        searches.append(tried)
        reasons: Any = None
        try:
            reasons = find_reasons(*args, **kwargs)
            return reasons
        finally:
            searches.pop()
            with safely(recorder, "a recompile"):
                _record(recorder, tried, frame.f_code, reasons)

    @functools.wraps(find_reason)
    def finding_one(
        guard_manager: Any, code: Any, f_locals: Any, compile_id: Any, *args: Any, **kwargs: Any
    ) -> Any:
        reason = find_reason(guard_manager, code, f_locals, compile_id, *args, **kwargs)
        if searches:
            with safely(recorder, "the guard that failed"):
                searches[-1].append(why_not(guard_manager, f_locals, str(compile_id), reason))
        return reason

    undo = [
        patch(convert_frame, "get_and_maybe_log_recompilation_reasons", finding),
        patch(torch_guards, "get_guard_fail_reason", finding_one),
    ]

    def uninstall() -> None:
        for restore in reversed(undo):
            restore()

    return uninstall


def _record(recorder: Recorder, tried: list[Tried], code: Any, reasons: Any) -> None:
    from torch._guards import CompileContext

    failed = _advised(tried, resumes_at(code) is not None)
    location = failed[0].location if failed and failed[0].location else function_location(code)
    for place in (location, *(entry.location for entry in failed)):
        if place is not None:
            recorder.source(place.file)
    texts = [entry.failed.guard for entry in tried] if reasons is None else reasons
    recorder.emit(
        Recompile(
            compile_id=str(CompileContext.current_compile_id() or recorder.compile_id),
            call=recorder.call,
            failed=failed,
            location=location,
            source_line=source_line(location),
            function=user_name(code.co_name),
            reason="\n".join(map(str, texts)),
            advice=failed[0].advice if failed else (),
        )
    )


def _advised(tried: list[Tried], resumed: bool) -> tuple[FailedGuard, ...]:
    """The failures, each with what helps against it; the other entries' failures matter to it."""
    settings = _settings()
    changes = [_changed(entry, resumed) for entry in tried]
    return tuple(
        msgspec.structs.replace(
            entry.failed,
            advice=advise([change, *(c for c in changes if c is not change)], settings),
        )
        for entry, change in zip(tried, changes, strict=True)
    )


def _changed(tried: Tried, resumed: bool) -> Changed:
    failed = tried.failed
    return Changed(
        what=tried.what,
        kind=failed.kind,
        source=failed.source,
        name=failed.name,
        expected=failed.expected,
        seen=failed.seen,
        index=tried.index,
        guard=failed.guard,
        described=tried.guard.value if tried.guard is not None else "",
        resumed=resumed,
    )


def _settings() -> dict[str, object]:
    """The settings of Dynamo that decide what helps against a recompile."""
    from torch._dynamo import config

    names = ("automatic_dynamic_shapes", "assume_static_by_default", "specialize_float")
    return {name: getattr(config, name, None) for name in names}


HOOK = Hook(
    name="recompiles",
    offers="each recompile: the guard that failed, the value expected and the value seen",
    needs=(
        "torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons(frame, skip_logging)",
        "torch._dynamo.guards:get_guard_fail_reason(guard_manager, code, f_locals, compile_id)",
        "torch._dynamo.guards:strip_local_scope",
        "torch._guards:CompileContext.current_compile_id",
    ),
    install=install,
    stage="capture",
    tried_on=("2.11.0", "2.12.0", "2.13.0", "2.14.0", "2.15.0"),
)
