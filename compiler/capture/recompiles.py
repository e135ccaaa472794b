"""Recompiles: which guard of each cache entry failed, what it expected and what it saw.

Hooks `get_and_maybe_log_recompilation_reasons` where Dynamo calls it (torch/_dynamo/
convert_frame.py) and `get_guard_fail_reason`, which it calls for each cache entry
(torch/_dynamo/guards.py). torch's own reasons are kept word for word.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from compiler.capture import guard_book
from compiler.capture.code import function_location, resumes_at, source_line, user_name
from compiler.capture.failed_guard import Failure, guard_behind, take_apart
from compiler.capture.guard_tree import parse_global_state
from compiler.capture.recompile_advice import Changed, advise
from compiler.capture.safely import safely
from compiler.capture.source_names import SOURCE, readable
from compiler.capture.values import describe_value, type_name
from compiler.control.hooks import Hook, Uninstall, patch
from compiler.control.recorder import Recorder
from compiler.trace.records import FailedGuard, Guard, Location, Recompile


@dataclass
class _Tried:
    """One cache entry that did not serve."""

    failed: FailedGuard
    what: str
    index: int | None = None
    guard: Guard | None = None


@dataclass
class _Reasons:
    """What is collected while torch looks for the reasons of one recompile."""

    tried: list[_Tried] = field(default_factory=list)


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import convert_frame
    from torch._dynamo import guards as torch_guards

    find_reasons = convert_frame.get_and_maybe_log_recompilation_reasons
    find_reason = torch_guards.get_guard_fail_reason
    searches: list[_Reasons] = []

    @functools.wraps(find_reasons)
    def finding(cache_entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.quiet:
            return find_reasons(cache_entries, frame, *args, **kwargs)
        search = _Reasons()
        searches.append(search)
        reasons: Any = None
        try:
            reasons = find_reasons(cache_entries, frame, *args, **kwargs)
            return reasons
        finally:
            searches.pop()
            with safely(recorder, "a recompile"):
                _record(recorder, search, frame.f_code, reasons)

    @functools.wraps(find_reason)
    def finding_one(
        guard_manager: Any, code: Any, f_locals: Any, compile_id: Any, *args: Any, **kwargs: Any
    ) -> Any:
        reason = find_reason(guard_manager, code, f_locals, compile_id, *args, **kwargs)
        if searches:
            with safely(recorder, "the guard that failed"):
                searches[-1].tried.append(_try(guard_manager, f_locals, str(compile_id), reason))
        return reason

    undo = [
        patch(convert_frame, "get_and_maybe_log_recompilation_reasons", finding),
        patch(torch_guards, "get_guard_fail_reason", finding_one),
    ]

    def uninstall() -> None:
        for restore in reversed(undo):
            restore()

    return uninstall


def _record(recorder: Recorder, search: _Reasons, code: Any, reasons: Any) -> None:
    from torch._guards import CompileContext

    location = _location(search.tried, code)
    resumed = resumes_at(code) is not None
    recorder.source(location.file)
    texts = [tried.failed.guard for tried in search.tried] if reasons is None else reasons
    recorder.emit(
        Recompile(
            compile_id=str(CompileContext.current_compile_id() or recorder.compile_id),
            call=recorder.call,
            failed=tuple(tried.failed for tried in search.tried),
            location=location,
            source_line=source_line(location),
            function=user_name(code.co_name),
            reason="\n".join(map(str, texts)),
            advice=advise([_changed(tried, resumed) for tried in search.tried], _settings()),
        )
    )


def _changed(tried: _Tried, resumed: bool) -> Changed:
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


def _location(tried: list[_Tried], code: Any) -> Location:
    """The line that made torch depend on the value; else the function's first line.

    The latest used entry decides, as for the advice.
    """
    guard = tried[0].guard if tried else None
    if guard is not None and guard.location is not None:
        return guard.location
    return function_location(code)


def _try(guard_manager: Any, f_locals: Any, compile_id: str, reason: str) -> _Tried:
    """Why one cache entry did not serve these locals."""
    own_words = _own_words(reason, compile_id)
    entry = guard_book.entry_of(guard_manager)
    guards = entry.guards if entry is not None else ()
    parts, tested = _failing_parts(guard_manager, f_locals)
    failure = _failing_part(parts, own_words)
    guard = guard_behind(failure, guards)
    scope = _scope(guard_manager, f_locals)
    state = entry.global_state if entry is not None else {}
    expected, seen = _values(failure, guard, scope, state)
    return _Tried(
        failed=FailedGuard(
            entry=compile_id,
            guard=own_words,
            kind=guard.kind if guard is not None else failure.kind,
            source=failure.source,
            name=failure.name,
            expected=expected,
            seen=seen,
            tested=tested,
        ),
        what=failure.what,
        index=failure.index,
        guard=guard,
    )


def _own_words(reason: str, compile_id: str) -> str:
    """torch's reason without the entry's id in front and the stack and the line behind."""
    text = reason.removeprefix(f"{compile_id}: ").partition("\nUser stack trace:")[0]
    return text.partition("  # ")[0].rstrip()


def _failing_parts(guard_manager: Any, f_locals: Any) -> tuple[list[str], int]:
    """The conditions of the leaf that fails, in full, and how many were tested up to it."""
    check = getattr(guard_manager, "check_verbose", None)
    if check is None:  # torch has thrown the entry's guards away: an object it needs is gone
        return [], 0
    info = check(f_locals)
    if info.result:
        return [], info.num_guards_executed
    return list(info.verbose_code_parts), info.num_guards_executed


def _failing_part(parts: list[str], own_words: str) -> Failure:
    """Of several conditions of one leaf, the one that torch names."""
    failures = [take_apart(part) for part in parts]
    for failure in failures:
        if _stripped(failure.text) == own_words:
            return failure
    if len(failures) == 1 and failures[0].what != "alias":
        return failures[0]
    return take_apart(own_words)


def _stripped(text: str) -> str:
    from torch._dynamo.guards import strip_local_scope

    return str(strip_local_scope(text))


def _scope(guard_manager: Any, f_locals: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(globals, locals) in which torch evaluates the texts of its guards."""
    outer = getattr(guard_manager, "global_scope", None) or {}
    inner = {"L": f_locals, "G": outer.get("G", {})}
    inner.update(getattr(guard_manager, "closure_vars", None) or {})
    return dict(outer), inner


def _values(
    failure: Failure,
    guard: Guard | None,
    scope: tuple[dict[str, Any], dict[str, Any]],
    state: dict[str, Any],
) -> tuple[str, str]:
    """(expected, seen), from torch's text where it says them, else looked up."""
    if failure.kind == "DEFAULT_DEVICE":
        return failure.expected, _default_device()
    if failure.what == "state":
        return _state_values(failure, state)
    if failure.what == "shape":
        sources = dict.fromkeys(SOURCE.findall(failure.text))
        sizes = [f"{readable(source)} = {_look_up(source, scope)}" for source in sources]
        return failure.expected, ", ".join(sizes)
    expected, seen = failure.expected, failure.seen
    if failure.what == "length":
        return expected, _look_up(f"len({failure.source})", scope)
    if failure.what == "identity":
        if guard is not None and guard.source == failure.source:
            expected = guard.value or expected
        return expected, _identity(failure.source, expected, scope)
    if failure.what == "alias":
        return expected, seen
    if failure.what == "type" and failure.source and not seen:
        return expected, _look_up(failure.source, scope, type_only=True)
    if failure.source and not seen:
        seen = _look_up(failure.source, scope)
    if not expected and guard is not None and guard.source == failure.source:
        expected = guard.value
    return expected, seen


def _identity(source: str, expected: str, scope: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """The object seen; `another …` where it reads the same as the one expected."""
    seen = _look_up(source, scope)
    return f"another {seen}" if seen == expected else seen


def _look_up(
    expression: str, scope: tuple[dict[str, Any], dict[str, Any]], type_only: bool = False
) -> str:
    """What an expression of torch's guard text gives for the values at hand; "" if nothing.

    This is what torch itself does to find its reasons (`get_guard_fail_reason_helper`).
    """
    try:
        value = eval(expression, *scope)
    except Exception:
        return ""
    return type_name(type(value)) if type_only else describe_value(value)


def _state_values(failure: Failure, expected: dict[str, Any]) -> tuple[str, str]:
    """The parts of torch's global state that changed, as `on`/`off` or their value."""
    seen = _current_state()
    changed = [name for name in expected if name in seen and expected[name] != seen[name]]
    named = [name for name in changed if name in failure.text] or changed
    if len(named) == 1:
        return _switch(expected[named[0]]), _switch(seen[named[0]])
    return (
        ", ".join(f"{name} {_switch(expected[name])}" for name in named),
        ", ".join(f"{name} {_switch(seen[name])}" for name in named),
    )


def _current_state() -> dict[str, Any]:
    """torch's global state now, as its own guard serialises it; empty where it cannot."""
    from torch._C._dynamo.guards import GlobalStateGuard

    serialise = getattr(GlobalStateGuard(), "__getstate__", None)
    return parse_global_state(str(serialise())) if serialise is not None else {}


def _default_device() -> str:
    from torch.utils import _device

    return repr(_device.CURRENT_DEVICE)


def _switch(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


HOOK = Hook(
    name="recompiles",
    offers="each recompile: the guard that failed, the value expected and the value seen",
    needs=(
        "torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons(cache_entries, frame)",
        "torch._dynamo.guards:get_guard_fail_reason(guard_manager, code, f_locals, compile_id)",
        "torch._dynamo.guards:strip_local_scope",
        "torch._guards:CompileContext.current_compile_id",
    ),
    install=install,
    stage="capture",
    tried_on=("2.13.0",),
)
