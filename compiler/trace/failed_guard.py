"""torch's text of a failed guard, parsed: what was checked, expected and seen.

The texts come from `GuardDebugInfo.verbose_code_parts` (torch/csrc/dynamo/guards.cpp) and from
`get_guard_fail_reason_helper` (torch/_dynamo/guards.py), which leaves out that names are local
(`strip_local_scope`): `n == 3` stands for `L['n'] == 3`. So do the logs of torch. A text of unknown
form is kept whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tcw.compiler.trace.records import Guard
from tcw.compiler.trace.source_names import (
    ATEN_DTYPES,
    SOURCE,
    class_name,
    guard_name,
    readable,
    tensor_class,
)


@dataclass(frozen=True)
class GuardFailure:
    """One failed condition. Fields that the text does not give are ""."""

    text: str
    """The condition, without the entry's id, hints and the user's line."""
    what: str
    """What was compared: `size`, `dtype`, `value`, `length`, `identity`, `shape`, `state`, …"""
    kind: str = ""
    """torch's name of the guard, as far as the text gives it."""
    source: str = ""
    name: str = ""
    index: int | None = None
    expected: str = ""
    seen: str = ""
    expression: str = ""
    """torch's expression for the compared value. Evaluating it gives `seen`."""


def without_comment(part: str) -> str:
    """A condition without the trailing user line and hints."""
    return part.partition("  # ")[0].partition(" (HINT: ")[0].rstrip()


def parse_failed_guard(part: str) -> GuardFailure:
    """Parse one condition as torch words it."""
    text = without_comment(part)
    whole = with_sources(text)
    for pattern, rule in _RULES:
        match = pattern.search(whole)
        if match:
            failure = rule(match)
            source, expression = local_source(failure.source), local_source(failure.expression)
            return replace(failure, text=text, source=source, expression=expression)
    match = SOURCE.search(text)
    source = match[0] if match else ""
    name = guard_name("", source) if source else ""
    return GuardFailure(text, "other", "", source, name, expected=readable(text), expression=source)


_SIZE_OF = re.compile(
    r"(?<![\w.'\"\]])([A-Za-z_]\w*)"
    r"(?=(?:\.\w+|\[[^\]]*\])*(?:\.(?:size|stride)\(\)\[|\.storage_offset\(\)))"
)
"""A local name in a condition on sizes."""


def with_sources(text: str) -> str:
    """A condition on sizes with its local names as torch's sources: `L['x'].size()[0] == 4`."""
    return text if SOURCE.search(text) else _SIZE_OF.sub(r"L['\1']", text)


def local_source(name: str) -> str:
    """torch's source of a value that is named as the user would: `L['kwargs']['ids']`. A source,
    and an expression, stay as they are."""
    if not name or SOURCE.match(name) or "(" in name:
        return name
    base = re.match(r"\w+", name)
    end = base.end() if base else 0
    return f"L['{name[:end]}']{name[end:]}"


GuardRule = Callable[[re.Match[str]], GuardFailure]
"""Reads a condition that its pattern matches; `parse_failed_guard` adds the text."""


def _rule(
    what: str,
    kind: str,
    name: str = "{source}",
    expected: str = "{expected}",
    seen: str = "",
    expression: str = "",
) -> GuardRule:
    """A condition on the value that the pattern found. The texts are filled in with the pattern's
    groups: `name` with them in the user's terms, `expression` as they are."""

    def rule(match: re.Match[str]) -> GuardFailure:
        groups = defaultdict(str, {key: text or "" for key, text in match.groupdict().items()})
        texts = [text.format_map(groups) for text in (expected, seen, expression)]
        source = groups["source"]
        for key in ("source", "other", "expression"):
            groups[key] = readable(groups[key])
        return GuardFailure("", what, kind, source, name.format_map(groups), None, *texts)

    return rule


def _tensor(match: re.Match[str]) -> GuardFailure:
    what, source = match["what"], match["source"]
    expected, seen = match["expected"].rstrip(",. "), (match["seen"] or "").rstrip(". ")
    index = int(match["index"]) if match["index"] else None
    name = readable(source)
    if what in ("size", "stride"):
        name = f"{name}.{what}({index})"
    elif what == "rank":
        name = f"{name}.dim()"
    elif what == "dtype":
        name = f"{name}.dtype"
        expected, seen = ATEN_DTYPES.get(expected, expected), ATEN_DTYPES.get(seen, seen)
    elif what == "requires_grad":
        name = f"{name}.requires_grad"
        required = expected.rpartition("=")[2] not in ("0", "False")
        expected, seen = str(required), str(not required)
    elif what == "device index":
        what, name = "device", f"{name}.device"
    elif _device(expected) and _device(seen) and _device(expected) != _device(seen):
        what, name = "device", f"{name}.device"
        expected, seen = _device(expected), _device(seen)
    return GuardFailure("", what, "TENSOR_MATCH", source, name, index, expected, seen)


def _device(keys: str) -> str:
    """`DispatchKeySet(CPU, BackendSelect, …)` -> `cpu`: the device named by the first key."""
    match = re.match(r"DispatchKeySet\((\w+), BackendSelect", keys)
    return match[1].lower() if match else ""


def _not_a_tensor(match: re.Match[str]) -> GuardFailure:
    seen, expected = class_name(match["seen"]), tensor_class(match["expected"] or "")
    name = readable(match["source"])
    return GuardFailure("", "type", "TENSOR_MATCH", match["source"], name, None, expected, seen)


def _global_state(match: re.Match[str]) -> GuardFailure:
    names = ", ".join(name.replace("_", " ") for name in match["names"].split())
    return GuardFailure("", "state", "GLOBAL_STATE", name=names)


def _ambient(kind: str) -> GuardRule:
    return _rule("state", kind, guard_name(kind, ""))


def _duplicate(match: re.Match[str]) -> GuardFailure:
    names = readable((match["names"] or "").replace('"', ""))
    return GuardFailure(
        "", "alias", "NO_TENSOR_ALIASING", "", names, None, "different tensors", "one tensor"
    )


def _identity(kind: str) -> GuardRule:
    def rule(match: re.Match[str]) -> GuardFailure:
        # the function that a guard on code checks: torch compares functions by their code
        source = match["source"].removesuffix(".__code__")
        return GuardFailure("", "identity", kind, source, readable(source), expression=source)

    return rule


def _type(match: re.Match[str]) -> GuardFailure:
    source, expected = match["source"], class_name(match["type"] or "")
    return GuardFailure("", "type", "TYPE_MATCH", source, readable(source), expected=expected)


def _present(what: str, kind: str, name: str) -> GuardRule:
    def rule(match: re.Match[str]) -> GuardFailure:
        absent = match["absent"] is not None
        return _rule(what, kind, name, str(not absent), str(absent))(match)

    return rule


def _shape(match: re.Match[str]) -> GuardFailure:
    """A condition on sizes, strides or numbers that torch kept symbolic."""
    text = match.string
    names = [readable(source) for source in dict.fromkeys(SOURCE.findall(text))]
    return GuardFailure("", "shape", "SHAPE_ENV", name=", ".join(names), expected=readable(text))


def _marking(match: re.Match[str]) -> GuardFailure:
    source = match.groupdict().get("source") or ""
    name = f"dynamic marks of {readable(source)}" if source else "dynamic marks of a tensor"
    return GuardFailure("", "marking", "TENSOR_MATCH", source, name, None, "none", "marked")


_ADDRESS = re.compile(r" \(id=0x[0-9a-fA-F]+\)")


def _backend(match: re.Match[str]) -> GuardFailure:
    sides = (match[side] or "a backend" for side in ("expected", "seen"))
    expected, seen = (_ADDRESS.sub("", side) for side in sides)
    if seen == expected:
        seen = f"another {seen.removeprefix('a ')}"
    return GuardFailure("", "backend", "BACKEND_MATCH", "", "backend", None, expected, seen)


def _length(expected: str = "{expected}") -> GuardRule:
    """`len(L['items']) == 2`; `not L['items']` is torch's condition for an empty one."""
    return _rule("length", "SEQUENCE_LENGTH", "len({source})", expected, "", "len({source})")


_SAME = _rule("alias", "DUPLICATE_INPUT", "{source}, {other}", "one object", "different objects")
_EQUALS = _rule("value", "EQUALS_MATCH", expression="{source}")
_L = r"(?P<source>[LG]\[.+?|[A-Za-z_]\w*(?:\.\w+|\[(?:'[^']*'|\d+)\])*)"
_RULES: tuple[tuple[re.Pattern[str], GuardRule], ...] = tuple(
    (re.compile(pattern, re.DOTALL), rule)
    for pattern, rule in (
        (
            r"tensor '(?P<source>.+?)' (?:Tensor )?(?P<what>size|stride|dtype|rank|requires_grad|"
            r"device index|dispatch key set) mismatch(?: at index (?P<index>\d+))?\. "
            r"[Ee]xpected (?:device index to be )?(?P<expected>.+?)"
            r"(?:,? (?:actual|but got|got) (?P<seen>.+?)(?:\. Guard failed on a parameter\b.*)?)?$",
            _tensor,
        ),
        (
            r"expected type of '(?P<source>.+?)' to be (?:a tensor type|(?P<expected><class .+?>))"
            r", .*?but found (?P<seen>.+)$",
            _not_a_tensor,
        ),
        (r"^GLOBAL_STATE changed: (?P<names>.*)$", _global_state),
        (r"^utils_device\.CURRENT_DEVICE == (?P<expected>.+)$", _ambient("DEFAULT_DEVICE")),
        (r"^___check_torch_function_mode_stack\(\)", _ambient("TORCH_FUNCTION_STATE")),
        (r"top_saved_tensors_hooks", _ambient("AUTOGRAD_SAVED_TENSORS_HOOKS")),
        (r"Duplicate tensors? found(?: where not expected!|: \[(?P<names>.*)\])?", _duplicate),
        (rf"^{_L} is (?P<other>[LG]\[.+)$", _SAME),
        (
            r"^___check_obj_id\((?P<source>.+?), \d+\)(?:, type=(?P<type>.+))?$",
            _identity("ID_MATCH"),
        ),
        (r"^___check_type_id\((?P<source>.+?), \d+\)(?:, type=(?P<type>.+))?$", _type),
        (r"^\w+GuardAccessor: .*? (?:on|of|in) (?P<source>[LG]\[.+)$", _identity("")),
        (r"^len\((?P<source>.+)\) (?:==|!=) (?P<expected>\d+)$", _length()),
        (rf"^not {_L}$", _length("0")),
        (
            r"^(?P<expression>list\(dict\.keys\((?P<source>.+)\)\)(?:\[\d+\])?) == "
            r"(?P<expected>.+)$",
            _rule("keys", "DICT_KEYS_MATCH", "{expression}", expression="{expression}"),
        ),
        (
            r"^(?P<absent>not )?___dict_contains\((?P<name>.+), (?P<source>[^,]+)\)$",
            _present("keys", "DICT_CONTAINS", "{name} in {source}"),
        ),
        (
            rf"^{_L} is (?P<expected>not None|None)$",
            _rule("value", "NONE_MATCH", expression="{source}"),
        ),
        (r"\.(?:size|stride)\(\)\[|\.storage_offset\(\)", _shape),
        (r"^hasattr\((?P<source>.+?), '_(?:dynamo|has_dynamo)_\w+'\) ==", _marking),
        (r"_has_dynamo_dim_marking", _marking),
        (
            rf"^(?P<absent>not )?hasattr\({_L}, '(?P<name>\w+)'\)$",
            _present("attribute", "HASATTR", "hasattr({source}, '{name}')"),
        ),
        (rf"^{_L} == (?P<expected>.+)$", _EQUALS),
        (rf"^___as_tensor\({_L}\)\.item\(\) == (?P<expected>.+)$", _EQUALS),
        (
            r"^BACKEND_MATCH failure: .*?(?:Cached backend: (?P<expected>.+?)\. New backend: "
            r"(?P<seen>.+?)\. )?If this",
            _backend,
        ),
        (
            r"^Cache line invalidated because (?P<source>.+) got deallocated",
            _rule("deallocated", "", expected="alive", seen="deallocated"),
        ),
    )
)
"""The first pattern that matches decides."""

_KINDS = {
    "length": ("SEQUENCE_LENGTH", "DICT_KEYS_MATCH", "DICT_CONST_KEYS", "LIST_LENGTH"),
    "keys": ("DICT_KEYS_MATCH", "DICT_CONST_KEYS", "MAPPING_KEYS_CHECK", "DICT_CONTAINS"),
    "identity": ("ID_MATCH", "CLOSURE_MATCH", "FUNCTION_MATCH", "BUILTIN_MATCH", "CLASS_MATCH"),
}
"""Guard kinds that install such a condition, for texts that do not name the kind."""


def guard_behind(failure: GuardFailure, guards: Sequence[Guard]) -> Guard | None:
    """The recorded guard behind a failed condition; None if there is no certain match.

    Matched by the condition's own text, else by source and kind, else by source, else by the
    source's nearest owner.
    """
    texts = {failure.text, with_sources(failure.text)}
    for guard in guards:
        if not texts.isdisjoint(guard.code):
            return guard
    if not failure.source:
        return next((guard for guard in guards if guard.kind == failure.kind), None)
    kinds = (failure.kind, *_KINDS.get(failure.what, ()))
    of_source = [guard for guard in guards if guard.source == failure.source]
    for guard in of_source:
        if guard.kind in kinds:
            return guard
    if of_source:
        return of_source[0]
    owners = [
        guard
        for guard in guards
        if guard.source and failure.source.startswith((guard.source + ".", guard.source + "["))
    ]
    return max(owners, key=lambda guard: len(guard.source), default=None)
