"""torch's text of a guard that failed, taken apart: what was looked at, expected and seen.

The texts come from `GuardDebugInfo.verbose_code_parts` (torch/csrc/dynamo/guards.cpp) and from
`get_guard_fail_reason_helper` (torch/_dynamo/guards.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.capture.source_names import SOURCE, guard_name, readable
from compiler.trace.records import Guard

_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
_TENSOR = re.compile(
    r"tensor '(?P<source>.+?)' (?:Tensor )?(?P<what>size|stride|dtype|rank|requires_grad|"
    r"device index|dispatch key set) mismatch(?: at index (?P<index>\d+))?\. "
    r"[Ee]xpected (?:device index to be )?(?P<expected>.+?)"
    r"(?:,? (?:actual|but got|got) (?P<seen>.+?))?$",
    re.DOTALL,
)
_NOT_A_TENSOR = re.compile(
    r"expected type of '(?P<source>.+?)' to be a tensor type, .*but found (?P<seen>.+)$", re.DOTALL
)
_EQUAL = re.compile(r"^(?P<source>[LG]\[.+?) == (?P<expected>.+)$", re.DOTALL)
_LENGTH = re.compile(r"^len\((?P<source>.+)\) == (?P<expected>\d+)$")
_IS = re.compile(r"^(?P<source>[LG]\[.+) is (?P<expected>not None|None)$")
_IDENTITY = re.compile(r"^___check_obj_id\((?P<source>.+?), \d+\)(?:, type=(?P<type>.+))?$")
_TYPE = re.compile(r"^___check_type_id\((?P<source>.+?), \d+\)(?:, type=(?P<type>.+))?$")
_CLASS = re.compile(r"^<class '(?:[\w<>]+\.)*(?P<name>\w+)'>$")
_GLOBAL_STATE = re.compile(r"^GLOBAL_STATE changed: (?P<what>.*)$")
_ACCESSOR = re.compile(r"^\w+GuardAccessor: .*? (?:on|of|in) (?P<source>[LG]\[.+)$")
_DUPLICATE = re.compile(r"Duplicate tensors? found(?: where not expected!|: \[(?P<names>.*)\])?")
_SAME = re.compile(r"^(?P<source>[LG]\[.+?) is (?P<other>[LG]\[.+)$")


@dataclass(frozen=True)
class Failure:
    """One failed condition. Values that the text does not carry are ""."""

    text: str
    """The condition, without the entry's id and the user's line."""
    what: str
    """What was compared: `size`, `dtype`, `value`, `length`, `identity`, `shape`, `state`, …"""
    kind: str = ""
    """torch's name of the guard."""
    source: str = ""
    name: str = ""
    index: int | None = None
    expected: str = ""
    seen: str = ""


def bare(part: str) -> str:
    """A condition without the user's line and hints behind it."""
    return part.partition("  # ")[0].partition(" (HINT: ")[0].rstrip()


def take_apart(part: str) -> Failure:
    """One condition as torch words it in `verbose_code_parts` -> what can be read from it."""
    text = bare(part)
    if match := _TENSOR.search(text):
        return _tensor(text, match)
    if match := _NOT_A_TENSOR.search(text):
        source = match["source"]
        return Failure(
            text, "type", "TENSOR_MATCH", source, readable(source), None, "a tensor",
            _class_name(match["seen"]),
        )  # fmt: skip
    if match := _GLOBAL_STATE.match(text):
        names = ", ".join(name.replace("_", " ") for name in match["what"].split())
        return Failure(text, "state", "GLOBAL_STATE", name=names)
    if text.startswith("utils_device.CURRENT_DEVICE == "):
        expected = text.partition(" == ")[2]
        return Failure(text, "state", "DEFAULT_DEVICE", "", "default device", expected=expected)
    if match := _DUPLICATE.search(text):
        names = (match["names"] or "").replace('"', "").replace("'", "")
        return Failure(
            text, "alias", "NO_TENSOR_ALIASING", "", names, None, "different tensors", "one tensor"
        )
    if match := _SAME.match(text):
        source, names = match["source"], f"{readable(match['source'])}, {readable(match['other'])}"
        return Failure(
            text, "alias", "DUPLICATE_INPUT", source, names, None, "one object", "different objects"
        )
    for pattern, what, kind in (
        (_IDENTITY, "identity", "ID_MATCH"),
        (_TYPE, "type", "TYPE_MATCH"),
    ):
        if match := pattern.match(text):
            expected = _class_name(match["type"] or "") if what == "type" else "the same object"
            return _found(text, what, kind, _owner(match["source"]), expected)
    if match := _LENGTH.match(text):
        source = match["source"]
        name = f"len({readable(source)})"
        return Failure(text, "length", "SEQUENCE_LENGTH", source, name, None, match["expected"])
    if match := _IS.match(text):
        return _found(text, "value", "NONE_MATCH", match["source"], match["expected"])
    if ".size()[" in text or ".stride()[" in text or ".storage_offset()" in text:
        return _shape(text)
    if "_indices') == False" in text or "_indices') == True" in text:
        source = _first_source(text)
        return _found(text, "marking", "TENSOR_MATCH", source, "")
    if match := _EQUAL.match(text):
        return _found(text, "value", "EQUALS_MATCH", match["source"], match["expected"])
    if match := _ACCESSOR.match(text):
        return _found(text, "identity", "", _owner(match["source"]), "")
    if text.startswith("BACKEND_MATCH"):
        return Failure(text, "backend", "BACKEND_MATCH", name="backend")
    if text.startswith("Cache line invalidated"):
        return Failure(text, "deallocated", name="")
    source = _first_source(text)
    return _found(text, "other", "", source, "")


def _found(text: str, what: str, kind: str, source: str, expected: str) -> Failure:
    name = guard_name(kind, source) if source or kind else ""
    return Failure(text, what, kind, source, name, None, expected)


def _tensor(text: str, match: re.Match[str]) -> Failure:
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
        expected, seen = _DTYPES.get(expected, expected), _DTYPES.get(seen, seen)
    elif what == "requires_grad":
        name = f"{name}.requires_grad"
        required = expected.rpartition("=")[2] not in ("0", "False")
        expected, seen = str(required), str(not required)
    elif what == "device index":
        what, name = "device", f"{name}.device"
    return Failure(text, what, "TENSOR_MATCH", source, name, index, expected, seen)


def _shape(text: str) -> Failure:
    """A condition on sizes, strides or numbers that torch kept symbolic."""
    names = [readable(source) for source in dict.fromkeys(SOURCE.findall(text))]
    return Failure(text, "shape", "SHAPE_ENV", name=", ".join(names), expected=readable(text))


def _owner(source: str) -> str:
    """The function that a guard on its code looks at: torch compares functions by their code."""
    return source.removesuffix(".__code__")


def _first_source(text: str) -> str:
    match = SOURCE.search(text)
    return match[0] if match else ""


def _class_name(text: str) -> str:
    """`<class 'torch.nn.modules.linear.Linear'>` -> `Linear`."""
    match = _CLASS.match(text.strip())
    return match["name"] if match else text.strip()


def guard_behind(failure: Failure, guards: Sequence[Guard]) -> Guard | None:
    """The recorded guard that holds the condition which failed.

    The condition's own text decides; else its source, of a guard of the same kind; else the
    nearest owner of the source (`L['x']` for `L['x'].__code__`).
    """
    if failure.what == "shape":
        return next((guard for guard in guards if guard.kind == "SHAPE_ENV"), None)
    if failure.kind in ("GLOBAL_STATE", "DEFAULT_DEVICE"):
        return next((guard for guard in guards if guard.kind == failure.kind), None)
    for guard in guards:
        if failure.text in guard.code:
            return guard
    if not failure.source:
        return None
    of_source = [guard for guard in guards if guard.source == failure.source]
    for guard in of_source:
        if guard.kind == failure.kind:
            return guard
    if of_source:
        return of_source[0]
    owners = [
        guard
        for guard in guards
        if guard.source and failure.source.startswith((guard.source + ".", guard.source + "["))
    ]
    return max(owners, key=lambda guard: len(guard.source), default=None)
