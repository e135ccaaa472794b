"""A copy of a trace without what its owner may not show: source, names, paths, strings, output.

Structure stays: graphs, shapes, lines, kernels, times, decisions, and which names are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from tcw.compiler.trace.records import (
    Advice,
    AnyRecord,
    DynamicSize,
    End,
    Source,
    Start,
    Text,
    Warned,
)
from tcw.compiler.trace.redaction.fields import FIELDS, Treatment
from tcw.compiler.trace.redaction.names import NeutralNames
from tcw.compiler.trace.writer import text_hash

_COMMENTS = {
    Treatment.CODE: re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL),
    Treatment.CODE_PYTHON: re.compile(
        r"(?m)(?:^|(?<=\s))#(?!\s*(?:include|pragma|define|undef|if|ifdef|ifndef|else|endif)\b)[^\n]*"
    ),
}
_HASHES = (Treatment.SOURCE, Treatment.CODE, Treatment.CODE_PYTHON)


def redacted(records: Iterable[AnyRecord]) -> Iterator[AnyRecord]:
    """The records of a finished trace, redacted, with a `Warned` after the start that says what was
    taken out."""
    known = list(records)
    names = NeutralNames()
    roles: dict[str, Treatment] = {}
    bodies = {record.hash: record.body for record in known if isinstance(record, Text)}
    dropped = [0]

    def collect(kind: Treatment, text: str) -> str:
        if kind is Treatment.NAME or (kind is Treatment.OPERATION and "." in text):
            names.collect(text)
        elif kind is Treatment.FILE:
            names.file(text)
        elif kind in _HASHES and text and roles.get(text) is not Treatment.SOURCE:
            roles[text] = kind
        elif kind is Treatment.DROPPED and text:
            roles.setdefault(text, Treatment.DROPPED)
            dropped[0] += 1
        return text

    for record in known:
        _mapped(record, collect)
        if isinstance(record, Source):
            names.of_source(bodies.get(record.text, ""))
    texts = {
        key: _body(roles.get(key, Treatment.DROPPED), body, names) for key, body in bodies.items()
    }

    def change(kind: Treatment, text: str) -> str:
        if kind in _HASHES:
            body = texts.get(text, "")
            return text_hash(body) if body else ""
        if kind is Treatment.KEPT:
            return text
        if kind is Treatment.DROPPED:
            return ""
        return (
            names.file(text)
            if kind is Treatment.FILE
            else names.scrubbed(text, kind is Treatment.VALUE)
        )

    changed = [
        Text(at=record.at, hash=text_hash(texts[record.hash]), body=texts[record.hash])
        if isinstance(record, Text)
        else _mapped(record, change)
        for record in known
        if not isinstance(record, Text) or texts[record.hash]
    ]
    sources = sum(isinstance(record, Source) for record in known)
    yield from _numbered(changed, _words(names, sources, dropped[0]))


def _words(names: NeutralNames, sources: int, dropped: int) -> str:
    return (
        f"redacted: without the text of source files ({sources}), names ({names.count}), "
        f"paths ({len(names.files)}), strings ({names.strings}), constants, and printed output, "
        f"source lines, tracebacks and the like ({dropped}); name1, file1, … stand for the user's"
    )


def _numbered(records: list[Any], words: str) -> Iterator[AnyRecord]:
    """With the notice, each text and each line once, and the number of lines in the end."""
    seen: set[bytes] = set()
    encode = msgspec.json.Encoder().encode
    told = False
    lines = 0
    for one in records:
        if isinstance(one, End):
            one = msgspec.structs.replace(one, lines=lines if one.lines else 0)
        line = encode(one)
        while line in seen and not isinstance(one, Text):
            one = msgspec.structs.replace(one, at=one.at + 1e-6)
            line = encode(one)
        if line in seen or (isinstance(one, Text) and one.hash.encode() in seen):
            continue
        seen.add(one.hash.encode() if isinstance(one, Text) else line)
        yield one
        lines += 1
        if isinstance(one, Start) and not told:
            told = True
            yield Warned(at=one.at or 1e-6, message=words, code="redacted", asked=True)
            lines += 1


def _body(kind: Treatment, body: str, names: NeutralNames) -> str:
    if kind is Treatment.SOURCE:
        return "\n" * (body.count("\n") + (not body.endswith("\n")))
    if kind not in _COMMENTS:
        return ""
    bare = _COMMENTS[kind].sub(lambda match: "\n" * match[0].count("\n"), body)
    return "\n".join(part.rstrip() for part in names.scrubbed(bare).split("\n"))


def _mapped(value: Any, change: Callable[[Treatment, str], str]) -> Any:
    """The struct with `change` of each text that `FIELDS` classifies."""
    fields = FIELDS.get(type(value).__name__, {})
    found: dict[str, Any] = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        if isinstance(value, DynamicSize) and isinstance(old, float):
            new = None  # a number of the user's, and no size
        else:
            new = _inside(old, fields.get(name, Treatment.KEPT), change)
        if new is not old:
            found[name] = new
    if isinstance(value, Advice) and value.code and not found.get("code", value.code):
        found["text"] = _alone(str(found.get("text", value.text)))
    if isinstance(value, Advice) and "options" in found:
        found["options"] = ()  # options that name something of the user's
    return msgspec.structs.replace(value, **found) if found else value


def _alone(text: str) -> str:
    """Advice that went on from its code, without it: `Or let torch …` -> `Let torch …`."""
    rest = text.removeprefix("Or ")
    return text if rest == text else rest[:1].upper() + rest[1:]


def _inside(value: Any, kind: Treatment, change: Callable[[Treatment, str], str]) -> Any:
    match value:
        case str():
            return change(kind, value) if kind is not Treatment.BODY else value
        case tuple():
            return tuple(_inside(one, kind, change) for one in value)
        case dict():
            return {
                _inside(key, kind, change): _inside(one, kind, change) for key, one in value.items()
            }
        case msgspec.Struct():
            return _mapped(value, change)
    return value
