"""Traces in which every text is out to harm: what steers terminals, markup, names of any length.

A text is changed in the same way wherever it stands, so that records still refer to each other.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

import msgspec
from msgspec import inspect, structs

from tcw.compiler.trace.records import AnyRecord, Start

EVIL = (
    "\x1b[2J\x1b]0;pwned\x07\x9b31m",
    "[/nope]",
    "[@click='app.quit']x[/]",
    "\u202e\u2066txt\u200f\u061c",
    "nul\x00 \x7f\r\n\ttwo\x0b\x0c\u2028lines",
    "e\u0301\u0323\u0300" * 4,
    "👩‍👩‍👧‍👦 🇩🇪 你好 ﷽",
    "</text><script>alert(1)</script>]]>&amp;",
    "\"'\\\\N\\l\\\"; b0 -> b0 [label=\"",
    "{0} %s ${HOME} `id` $(id)",
    "\ufeff\u200b\u00ad\ue000\U000e0041\u2800",
    "..",
    "",
)  # fmt: skip
LONG = 10_000
How = Literal["added", "replaced", "long"]


def hostile(records: Sequence[AnyRecord], how: How) -> list[AnyRecord]:
    """`added`: evil is put behind every text, which keeps its meaning; `replaced`: nothing else is
    left; `long`: every text is filled up to 10,000 characters."""
    return [_record(record, _CHANGES[how]) for record in records]


def _added(text: str) -> str:
    return text + EVIL[zlib.crc32(text.encode()) % len(EVIL)]


def _replaced(text: str) -> str:
    number = zlib.crc32(text.encode())
    return f"{EVIL[number % len(EVIL)]}{number % 7919}{EVIL[number // 64 % len(EVIL)]}"


def _long(text: str) -> str:
    evil = EVIL[zlib.crc32(text.encode()) % len(EVIL)]
    return (text + evil + "n" * LONG)[: max(LONG, len(text))]


_CHANGES: dict[How, Callable[[str], str]] = {"added": _added, "replaced": _replaced, "long": _long}


def _record(record: AnyRecord, change: Callable[[str], str]) -> AnyRecord:
    made = _struct(record, change)
    if isinstance(record, Start):
        made = structs.replace(made, schema_version=record.schema_version)
    return made  # type: ignore[return-value]


_type_info = cache(inspect.type_info)
"""It reads the annotations of all fields again with each call."""


def _struct(value: msgspec.Struct, change: Callable[[str], str]) -> msgspec.Struct:
    kind = _type_info(type(value))
    assert isinstance(kind, inspect.StructType)
    fields = {
        field.name: _value(getattr(value, field.name), field.type, change) for field in kind.fields
    }
    return type(value)(**fields)


def _value(value: object, kind: inspect.Type, change: Callable[[str], str]) -> object:
    """`value` with every text of a field that may be any text changed."""
    if isinstance(kind, inspect.UnionType):
        fits = [one for one in kind.types if _fits(value, one)]
        return _value(value, fits[0], change) if fits else value
    if isinstance(kind, inspect.StrType) and isinstance(value, str):
        return change(value)
    if isinstance(kind, inspect.StructType) and isinstance(value, msgspec.Struct):
        return _struct(value, change)
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, tuple):
        return tuple(_value(one, kind.item_type, change) for one in value)
    if isinstance(kind, inspect.TupleType) and isinstance(value, tuple):
        pairs = zip(value, kind.item_types, strict=True)
        return tuple(_value(one, of, change) for one, of in pairs)
    if isinstance(kind, inspect.DictType) and isinstance(value, dict):
        return {
            _value(key, kind.key_type, change): _value(one, kind.value_type, change)
            for key, one in value.items()
        }
    return value


def _fits(value: object, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.LiteralType):
        return value in kind.values
    plain: dict[type, type] = {
        inspect.StrType: str,
        inspect.StructType: msgspec.Struct,
        inspect.VarTupleType: tuple,
        inspect.TupleType: tuple,
        inspect.DictType: dict,
    }
    wanted = plain.get(type(kind))
    return wanted is not None and isinstance(value, wanted)
