"""The only encoder of the JSON that tcw prints or writes: safe to view, and equal when parsed.

Characters that `tcw.viewers.plain` makes visible in text (controls, bidirectional overrides,
zero-width characters, spaces of other widths) are escaped, as `\\u202e`. `JsonItem` is what the
objects are made of; the published schemas are generated from its structs.
"""

from __future__ import annotations

import re
from typing import Any, Protocol, Self

import msgspec

from tcw.compiler.trace.writer import without_surrogates
from tcw.viewers.plain import can_encode, plain

_NOT_ASCII = re.compile(r"[^\n -~]")


def json_text(value: Any, indent: int = 2, encoding: str = "utf-8") -> str:
    """`value` as JSON with a newline at its end. `indent` 0: on one line.

    Always valid: nan and infinity become null, lone surrogates `?`, and characters outside
    `encoding` are escaped.
    """
    try:
        body = msgspec.json.encode(value)
    except UnicodeEncodeError:
        body = msgspec.json.encode(without_surrogates(msgspec.to_builtins(value)))
    if indent:
        body = msgspec.json.format(body, indent=indent)

    def written(found: re.Match[str]) -> str:
        character = found[0]
        if plain(character) != character or not can_encode(character, encoding):
            units = character.encode("utf-16-be")
            return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
        return character

    return _NOT_ASCII.sub(written, body.decode()) + "\n"


class _Place(Protocol):
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


class JsonItem(msgspec.Struct, kw_only=True):
    """A part of a report; every key is always there."""

    @classmethod
    def of(cls, source: object, **more: object) -> Self:
        """Filled from the attributes of a record or summary with the names of the fields, parts
        included; `more` has what `source` lacks, by field."""
        values = {
            key: more[name] if name in more else getattr(source, name)
            for name, key in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
        }
        return msgspec.convert(values, cls, from_attributes=True)


def placed(place: _Place | None) -> dict[str, Any]:
    """`file` and `line` of an item; "" and null if there is no place."""
    return {"file": place.file if place else "", "line": place.line if place else None}
