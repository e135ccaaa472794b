"""Recompiles: which guard of each cache entry failed, what it expected and what it saw.

Hooks `get_and_maybe_log_recompilation_reasons` where Dynamo calls it
(torch/_dynamo/convert_frame.py), and `get_guard_fail_reason`, which that function calls for each
cache entry (torch/_dynamo/guards.py). torch's own reasons are kept verbatim.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tcw.compiler.capture.active_advice import without_active
from tcw.compiler.capture.advice.user_source import user_source
from tcw.compiler.capture.callers import Caller, caller_of
from tcw.compiler.capture.code_objects import function_location, resumes_at, source_line
from tcw.compiler.capture.failing_entry import TriedEntry, explain_failed_entry
from tcw.compiler.capture.guarded_value import facts_of
from tcw.compiler.capture.recompile_advice import ARGUMENT, STACK, ChangedValue, advise
from tcw.compiler.capture.recompile_advice.users_call import UsersCall, users_call, users_line
from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id
from tcw.compiler.graphs.lines import is_users_own, outside_torch
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import FailedGuard, Location, Recompile
from tcw.compiler.trace.source_names import readable, root_of


@dataclass
class _Search:
    """The entries that did not serve one call of a frame."""

    caller: Caller = field(default_factory=Caller)
    call: UsersCall | None = None
    """The user's own call of the frame."""
    line: Location | None = None
    """The innermost line of the user's own that runs."""
    tried: list[TriedEntry] = field(default_factory=list)


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import convert_frame
    from torch._dynamo import guards as torch_guards

    find_reasons = convert_frame.get_and_maybe_log_recompilation_reasons
    searches: list[_Search] = []
    """One per recompile whose reasons torch is collecting now."""

    @functools.wraps(find_reasons)
    def finding(*args: Any, **kwargs: Any) -> Any:
        frame = args[1] if len(args) > 1 else kwargs.get("frame")
        # torch 2.11 calls this a second time, without logging, for its metrics
        unlogged = args[3] if len(args) > 3 else kwargs.get("skip_logging", False)
        if recorder.quiet or unlogged or frame is None:
            return find_reasons(*args, **kwargs)
        search = _Search()
        with Safely(recorder, "what a call passes"):
            code, given, root = frame.f_code, frame.f_locals, recorder.user_root
            search.caller = caller_of(code, given, recorder.arguments)
            search.line = users_line(sys._getframe(1), root)
            search.call = users_call(sys._getframe(1), root, search.caller.code or code, given)
        searches.append(search)
        reasons: Any = None
        try:
            reasons = find_reasons(*args, **kwargs)
            return reasons
        finally:
            searches.pop()
            with Safely(recorder, "a recompile"):
                _record(recorder, search, frame.f_code, reasons)

    def found_one(
        reason: Any,
        guard_manager: Any,
        code: Any,
        f_locals: Any,
        compile_id: Any,
        *_: Any,
        **__: Any,
    ) -> None:
        if searches:
            with Safely(recorder, "the guard that failed"):
                search = searches[-1]
                search.tried.append(
                    explain_failed_entry(
                        guard_manager,
                        f_locals,
                        compile_id,
                        reason,
                        search.caller,
                        getattr(code, "co_freevars", ()),
                    )
                )

    return undo_all(
        patch(convert_frame, "get_and_maybe_log_recompilation_reasons", finding),
        after_call(torch_guards, "get_guard_fail_reason", found_one),
    )


def _record(recorder: Recorder, search: _Search, code: Any, reasons: Any) -> None:
    tried = search.tried
    locations = [_location(entry, search, code, recorder.user_root) for entry in tried]
    changed = [
        _changed(entry, search, code, location, recorder.user_root)
        for entry, location in zip(tried, locations, strict=True)
    ]
    failed = []
    for index, (entry, location) in enumerate(zip(tried, locations, strict=True)):
        recorder.source(location.file)
        guard = msgspec.structs.replace(
            entry.failed,
            location=location,
            source_line=source_line(location),
            advice=without_active(advise(changed[index:] + changed[:index], _settings())),
        )
        failed.append(guard)
    first = failed[0] if failed else FailedGuard(entry="", guard="")
    location = first.location or function_location(code)
    recorder.source(location.file)
    texts = [entry.failed.guard for entry in tried] if reasons is None else reasons
    recorder.emit(
        Recompile(
            compile_id=current_compile_id() or recorder.compile_id,
            call=recorder.call,
            failed=tuple(failed),
            location=location,
            source_line=source_line(location),
            function=search.caller.function or user_name(code.co_name),
            reason="\n".join(map(str, texts)),
            advice=first.advice,
        )
    )


def _changed(
    tried: TriedEntry, search: _Search, code: Any, location: Location, root: str
) -> ChangedValue:
    failed, caller = tried.failed, search.caller
    resumes = resumes_at(code)
    source = user_source(location.file) if is_users_own(location.file, root) else None
    broken = user_source(function_location(code).file) if resumes is not None else None
    changed = ChangedValue(
        what=tried.what,
        kind=failed.kind,
        source=failed.source,
        subject=caller.named(readable(failed.source)),
        name=failed.name,
        expected=failed.expected,
        seen=failed.seen,
        index=tried.index,
        guard=caller.named(readable(failed.guard)),
        described=tried.guard.value if tried.guard is not None else "",
        resumed=resumes is not None,
        by_chance=tried.by_chance,
        made=root_of(readable(failed.source)) in caller.made,
        line=source_line(location),
        sizes=tuple(
            (caller.named(readable(source)), index)
            for source, index in tried.sizes
            if ARGUMENT.match(source)
        ),
        passed=_passed(failed.source, caller),
        wrapped=tried.wrapped,
        function=source.function_at(location.line) if source is not None else None,
        source_text=source,
        call=search.call if resumes is None else None,
        resumes=(broken, resumes) if broken is not None and resumes is not None else None,
    )
    if tried.look_up is None or not failed.source:
        return changed
    with_facts = functools.partial(facts_of, tried.look_up, failed.source, tried.index)
    return dataclasses.replace(changed, facts=with_facts(changed.statement, root))


def _passed(source: str, caller: Caller) -> Literal["", "*", "**"]:
    if caller.positional and source == f"L['{caller.positional}']":
        return "*"
    return "**" if caller.keywords and source == f"L['{caller.keywords}']" else ""


def _settings() -> dict[str, object]:
    """The Dynamo settings on which the advice against a recompile depends."""
    from torch._dynamo import config

    names = ("automatic_dynamic_shapes", "assume_static_by_default", "specialize_float")
    return {name: getattr(config, name, None) for name in names}


def _location(tried: TriedEntry, search: _Search, code: Any, root: str) -> Location:
    """The line that made torch depend on the value, in the user's own files if possible.

    An argument used only by library code is located at its declaration in the signature, but for
    `self`, whose declaration says nothing. A value that a graph break left on the stack is located
    at that line. What has no line but in torch's own files (global state, a module of torch's) is
    located where the user's own code called it, else at the function's first line.
    """
    found = _own_location(tried, search.caller, code, root)
    torchs = tried.what == "state" or not outside_torch(found.file)
    return search.line if torchs and search.line is not None else found


def _own_location(tried: TriedEntry, caller: Caller, code: Any, root: str) -> Location:
    line = tried.failed.location
    if line is not None and is_users_own(line.file, root):
        return line
    resumed_at = resumes_at(code)
    if resumed_at is not None and STACK.match(tried.failed.source):
        place = function_location(code)
        return msgspec.structs.replace(place, line=resumed_at, end_line=resumed_at)
    root_name = root_of(caller.named(readable(tried.failed.source)))
    argument = caller.parameter(root_name)
    if root_name == "self":
        return tried.own_line or line or argument or function_location(code)
    return tried.own_line or argument or line or function_location(code)


HOOK = RecordingHook(
    name="recompiles",
    offers="each recompile: the guard that failed, the value expected and the value seen",
    needs=(
        "torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons(frame, skip_logging)",
        "torch._dynamo.guards:get_guard_fail_reason(guard_manager, code, f_locals, compile_id)",
        "torch._dynamo.guards:strip_local_scope",
        "torch._guards:CompileContext.current_compile_id",
        "torch._C._dynamo.guards:GlobalStateGuard",
        "torch.overrides:_get_current_function_mode_stack",
        "torch.utils._device:CURRENT_DEVICE",
    ),
    install=install,
    stage="capture",
    test="capture/test_recompiles.py",
)
