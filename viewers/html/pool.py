"""Rows and refs of a document, each stored once and named by a number."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar, get_args

from tcw.compiler.trace.refs import Ref
from tcw.viewers.kit.spans import Line, Role
from tcw.viewers.panes.rows import Row
from tcw.viewers.plain import plain

ROLES: tuple[Role, ...] = get_args(Role)
_NUMBERS = {role: number for number, role in enumerate(ROLES)}
TINTS = ("", "added", "removed")

T = TypeVar("T", bound=Hashable)


def encoded(value: Any) -> str:
    """A value as the file has it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size(value: Any) -> int:
    """Bytes of a value and a comma in the file, before characters of HTML are escaped."""
    return len(encoded(value).encode("utf-8", "replace")) + 1


class Distinct(Generic[T]):
    """Values in the order in which they were first seen."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def known(self, value: T) -> int | None:
        """The value's number; None if it was never seen."""
        return self._numbers.get(value)

    def values(self) -> Iterable[T]:
        return self._numbers

    def __len__(self) -> int:
        return len(self._numbers)


Spans = tuple[int | str, ...]
"""Role, text, role, text, …"""


def spans(line: Line) -> Spans:
    """A line; neighbours of one role are one span. Control characters are made visible here too,
    where a pane forgot."""
    found: list[int | str] = []
    for words, role in line:
        if not words:
            continue
        shown = words if words.isprintable() else plain(words)
        number = _NUMBERS[role]
        if found and found[-2] == number:
            found[-1] = f"{found[-1]}{shown}"
        else:
            found += (number, shown)
    return tuple(found)


class Pool:
    """The parts of the panels of a document."""

    def __init__(self) -> None:
        self.rows: Distinct[tuple[Spans, Spans, Spans, int]] = Distinct()
        self.refs: Distinct[Ref] = Distinct()
        self.refs.number("")  # 0: a row that shows nothing of the trace
        self.bytes = 0
        """Bytes that the rows take in the file."""
        self._known: dict[tuple[Line, Line, Line, str], int] = {}

    def row(self, row: Row) -> int:
        """The number of a row's text: gutter, body, right, tint."""
        lines = row.gutter, row.body, row.right, row.tint
        known = self._known.get(lines)
        if known is not None:
            return known
        before = len(self.rows)
        value = spans(row.gutter), spans(row.body), spans(row.right), TINTS.index(row.tint)
        number = self._known[lines] = self.rows.number(value)
        if number == before:
            self.bytes += size(value)
        return number
