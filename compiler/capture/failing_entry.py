"""Why one cache entry did not serve a call: the failed condition, with both values.

Values missing from torch's text are looked up as torch itself does, by evaluating its source
expressions in the frame's locals (`get_guard_fail_reason_helper` in torch/_dynamo/guards.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcw.compiler.capture import cache_entries
from tcw.compiler.capture.callers import Caller
from tcw.compiler.capture.guard_tree import line_behind, parse_global_state
from tcw.compiler.capture.value_words import describe_value, type_name
from tcw.compiler.graphs.current import name_of
from tcw.compiler.trace.failed_guard import (
    GuardFailure,
    guard_behind,
    parse_failed_guard,
    without_comment,
)
from tcw.compiler.trace.records import FailedGuard, Guard, Location
from tcw.compiler.trace.source_names import SOURCE, readable


@dataclass(frozen=True)
class TriedEntry:
    """One cache entry that did not serve."""

    failed: FailedGuard
    what: str
    """As `GuardFailure.what`."""
    index: int | None
    guard: Guard | None
    """The guard behind the condition, as recorded when the entry was compiled."""
    own_line: Location | None = None
    """The line in the user's own files that made torch depend on the value."""
    sizes: tuple[tuple[str, int], ...] = ()
    """If a size failed: (source, dimension) of every size of a local tensor that differs."""
    by_chance: bool = False
    """torch took two sizes for one because they were equal when it compiled the entry."""
    wrapped: bool = False
    """The entry belongs to another function that the frame, a decorator's wrapper, wraps."""
    look_up: Callable[[str], Any] | None = None
    """Evaluates a source in the frame's locals; it may raise."""


class GuardScope:
    """The namespace in which torch evaluates guard texts: `L`, `G` and the guards' closure."""

    def __init__(self, guard_manager: Any, f_locals: Mapping[str, Any]) -> None:
        self._globals = dict(getattr(guard_manager, "global_scope", None) or {})
        self._locals = {"L": f_locals, "G": self._globals.get("G", {})}
        self._locals.update(getattr(guard_manager, "closure_vars", None) or {})

    def look_up(self, expression: str) -> Any:
        """Evaluate one of torch's source expressions; exceptions propagate."""
        return eval(expression, self._globals, self._locals)

    def described(self, expression: str, type_only: bool = False) -> str:
        """A short description of the value; "" if it cannot be evaluated."""
        try:
            value = self.look_up(expression)
        except Exception:
            return ""
        return type_name(type(value)) if type_only else describe_value(value)


def explain_failed_entry(
    guard_manager: Any,
    f_locals: Any,
    compile_id: Any,
    reason: str,
    caller: Caller,
    free: Sequence[str],
) -> TriedEntry:
    """Explain why this entry did not serve these locals, given torch's own `compile_id` and
    `reason`. `free`: the frame's free variables."""
    own_words = _own_words(reason, str(compile_id))
    entry = cache_entries.entry_of(guard_manager)
    guards = entry.guards if entry is not None else ()
    parts, tested = _failing_parts(guard_manager, f_locals)
    failure = _failing_part(parts, own_words)
    scope = GuardScope(guard_manager, f_locals)
    other = _other_function(guards, scope, free)
    if other is not None:
        failure, own_words = other, other.text
    guard = guard_behind(failure, guards)
    state = entry.global_state if entry is not None else {}
    expected, seen = _values(failure, guard, scope, state)
    name = caller.named(failure.name)
    if failure.what == "shape":
        expected, seen = caller.named(expected), caller.named(seen)
    if guard is not None and guard.source == failure.source and failure.what == "value":
        name = guard.name
    elif failure.what == "marking" and not failure.source:
        name = _marked(guards, scope) or name
    return TriedEntry(
        failed=FailedGuard(
            entry=name_of(compile_id),
            guard=own_words,
            kind=guard.kind if guard is not None else failure.kind,
            source=failure.source,
            name=name,
            expected=expected,
            seen=seen,
            tested=tested,
            location=_shape_line(parts, failure, scope, entry)
            or (guard.location if guard is not None else None),
        ),
        what=failure.what,
        index=failure.index,
        guard=guard,
        own_line=_own_line(entry, guard, failure),
        sizes=_sizes(guards, scope) if failure.what == "size" else (),
        by_chance=any(_DUCK in part for part in parts if without_comment(part) == failure.text),
        wrapped=other is not None,
        look_up=scope.look_up,
    )


def _other_function(
    guards: Sequence[Guard], scope: GuardScope, free: Sequence[str]
) -> GuardFailure | None:
    """The failure of an entry made for another function in one of the frame's free variables.

    Functions under one decorator share its wrapper's code, and so its cache entries. What torch
    tests before it comes to the function, such as the number of arguments, differs by chance.
    """
    sources = {f"L['{name}']" for name in free}
    for guard in guards:
        if guard.kind != "CLOSURE_MATCH" or guard.source not in sources:
            continue
        seen = scope.described(guard.source)
        if seen and seen != guard.value:
            text = guard.code[0] if guard.code else guard.source
            return replace(
                parse_failed_guard(text),
                what="identity",
                kind=guard.kind,
                source=guard.source,
                name=guard.name,
                expected=guard.value,
                seen=seen,
            )
    return None


def _own_line(
    entry: cache_entries.RecordedEntry | None, guard: Guard | None, failure: GuardFailure
) -> Location | None:
    source = guard.source if guard is not None else failure.source
    return entry.own_lines.get(source) if entry is not None else None


_DUCK = "duck sizing added this equality"
"""Of torch's text of a condition (`ShapeEnv.produce_guards_verbose`)."""
_SIZES = re.compile(r"^check_tensor\(.*, size=\[(?P<sizes>[^\]]*)\]", re.DOTALL)


def _sizes(guards: Sequence[Guard], scope: GuardScope) -> tuple[tuple[str, int], ...]:
    """Sizes that differ from those demanded by the guards on local tensors, in the guards' order.

    torch stops at the first difference, but each of them would fail. Sizes 0 and 1 are left out:
    torch specialises on them even if it makes a size dynamic.
    """
    found: list[tuple[str, int]] = []
    for guard in guards:
        matches = (_SIZES.match(code) for code in guard.code)
        match = next(filter(None, matches), None)
        if match is None or not guard.source.startswith("L["):
            continue
        try:
            seen = [str(size) for size in scope.look_up(guard.source).shape]
        except Exception:
            continue
        expected = match["sizes"].split(", ") if match["sizes"] else []
        if len(expected) == len(seen):
            for index, (wanted, got) in enumerate(zip(expected, seen, strict=True)):
                if wanted not in ("None", got) and not {wanted, got} & {"0", "1"}:
                    found.append((guard.source, index))
    return tuple(dict.fromkeys(found))


def _own_words(reason: str, compile_id: str) -> str:
    """torch's reason without the leading entry id and the trailing line and stack."""
    text = reason.removeprefix(f"{compile_id}: ").partition("\nUser stack trace:")[0]
    return text.partition("  # ")[0].rstrip()


def _failing_parts(guard_manager: Any, f_locals: Any) -> tuple[list[str], int]:
    """The conditions of the failing leaf, and the number of guards executed up to it."""
    check = getattr(guard_manager, "check_verbose", None)
    if check is None:  # torch dropped the entry's guards because an object that they need is gone
        return [], 0
    info = check(f_locals)
    return ([] if info.result else list(info.verbose_code_parts)), info.num_guards_executed


def _failing_part(parts: Sequence[str], own_words: str) -> GuardFailure:
    """Among several conditions of one leaf, the one that torch names."""
    from torch._dynamo.guards import strip_local_scope

    failures = [parse_failed_guard(part) for part in parts]
    for failure in failures:
        if strip_local_scope(failure.text) == own_words:
            return failure
    if len(failures) == 1 and failures[0].what != "alias":
        return failures[0]
    return parse_failed_guard(own_words)


def _shape_line(
    parts: Sequence[str],
    failure: GuardFailure,
    scope: GuardScope,
    entry: cache_entries.RecordedEntry | None,
) -> Location | None:
    """The line that made torch demand a condition on sizes."""
    if failure.what != "shape" or entry is None:
        return None
    part = next((part for part in parts if without_comment(part) == failure.text), "")
    sources = list(dict.fromkeys(SOURCE.findall(failure.text)))
    try:
        seen = int(scope.look_up(sources[0])) if len(sources) == 1 else None
    except Exception:
        seen = None
    files = [entry.code.co_filename, *(line.file for line in entry.own_lines.values())]
    files += [guard.location.file for guard in entry.guards if guard.location is not None]
    return line_behind(part, seen, files)


def _values(
    failure: GuardFailure, guard: Guard | None, scope: GuardScope, state: Mapping[str, Any]
) -> tuple[str, str]:
    """(expected, seen)."""
    if failure.what == "state":
        return _ambient_values(failure, guard, state)
    if failure.what == "shape":
        sources = dict.fromkeys(SOURCE.findall(failure.text))
        sizes = [f"{readable(source)} = {scope.described(source)}" for source in sources]
        return failure.expected, ", ".join(sizes)
    expected, seen = failure.expected, failure.seen
    if failure.what == "type":
        if expected == "a tensor" and guard is not None:
            expected = _tensor_class(guard) or expected
        return _classes(expected, guard, seen or scope.described(failure.source, type_only=True))
    if failure.expression and not seen:
        seen = scope.described(failure.expression)
    if not expected and guard is not None and guard.source == failure.source:
        expected = guard.value
    if failure.what == "identity" and seen and seen == expected:
        seen = f"another {seen}"
    return expected, seen


def _classes(expected: str, guard: Guard | None, seen: str) -> tuple[str, str]:
    """Two classes by their names alone; if those are equal, with their modules."""
    short = seen.rpartition(".")[2]
    if short != expected:
        return expected, short if "." not in expected else seen
    whole = guard.value if guard is not None and guard.kind == "TYPE_MATCH" else ""
    return whole or expected, seen


def _tensor_class(guard: Guard) -> str:
    """The class that a TENSOR_MATCH demands; "" if it is a plain tensor."""
    prefix = f"check_tensor({guard.source}, "
    for code in guard.code:
        if code.startswith(prefix):
            name = code.removeprefix(prefix).partition(",")[0]
            return "" if name == "Tensor" else name
    return ""


def _marked(guards: Sequence[Guard], scope: GuardScope) -> str:
    """The tensor that has dynamic marks now, if torch does not name it."""
    for guard in guards:
        if guard.kind == "TENSOR_MATCH":
            try:
                tensor = scope.look_up(guard.source)
                marks = [name for name in vars(tensor) if name.startswith("_dynamo_")]
            except Exception:
                continue
            if marks:
                return f"dynamic marks of {guard.name}"
    return ""


def _ambient_values(
    failure: GuardFailure, guard: Guard | None, state: Mapping[str, Any]
) -> tuple[str, str]:
    if failure.kind == "DEFAULT_DEVICE":
        from torch.utils import _device

        return failure.expected, repr(_device.CURRENT_DEVICE)
    if failure.kind == "TORCH_FUNCTION_STATE":
        return (guard.value if guard is not None else ""), function_modes(current_modes())
    return _state_values(failure, state) if failure.kind == "GLOBAL_STATE" else ("", "")


def current_modes() -> list[Any]:
    """The active torch function modes, outermost first."""
    from torch.overrides import _get_current_function_mode_stack

    return list(_get_current_function_mode_stack())


def function_modes(modes: Sequence[Any]) -> str:
    return ", ".join(type_name(type(mode)) for mode in modes) or "none"


def _state_values(failure: GuardFailure, expected: Mapping[str, Any]) -> tuple[str, str]:
    """The changed parts of torch's global state, as (expected, seen)."""
    from torch._C._dynamo.guards import GlobalStateGuard

    serialise = getattr(GlobalStateGuard(), "__getstate__", None)
    seen = parse_global_state(str(serialise())) if serialise is not None else {}
    names = [name for name in expected if name in seen and expected[name] != seen[name]]
    named = [name for name in names if name.partition("_")[0] in failure.text] or names
    if len(named) == 1:
        return _setting(named[0], expected), _setting(named[0], seen)
    return (
        ", ".join(f"{_words(name)} {_setting(name, expected)}" for name in named),
        ", ".join(f"{_words(name)} {_setting(name, seen)}" for name in named),
    )


def _words(name: str) -> str:
    return name.removesuffix("_state").replace("_", " ")


_SCALAR_TYPES = {5: "float16", 6: "float32", 7: "float64", 15: "bfloat16"}
"""c10::ScalarType values, as `GlobalStateGuard` encodes the default dtype."""


def _setting(name: str, state: Mapping[str, Any]) -> str:
    value = state[name]
    if name == "autocast_state" and isinstance(value, dict):
        value = any(value.get("enabled", ()))
    if name == "default_dtype":
        value = _SCALAR_TYPES.get(value, value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
