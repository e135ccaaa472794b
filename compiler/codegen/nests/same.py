"""Nests that are the same up to names, and the code of one for another: layers repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from tcw.compiler.loops.expressions import Local
from tcw.compiler.loops.nest import Let, Nest, Reduction, ScanAlong

Emitted = TypeVar("Emitted")

NAMED = (Let, Reduction, ScanAlong, Local)
"""Expressions and statements with the name of a value of their nest."""


@dataclass(slots=True)
class Form:
    """A nest without its names."""

    key: object = None
    """Equal for nests that can share code."""
    buffers: dict[str, int] = field(default_factory=dict)
    """The nest's buffers -> their numbers."""
    _values: dict[str, int] = field(default_factory=dict)

    def of(self, value: Any) -> object:
        """A part of a nest with numbers in place of names, and without what does not affect
        code."""
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        if isinstance(value, float):
            return repr(value)  # -0.0 and 0.0 are equal
        if isinstance(value, bool):
            return str(value)
        if not is_dataclass(value):
            return value
        kind: Any = type(value)
        found: list[object] = [kind]
        for name in _fields(kind):
            own = getattr(value, name)
            if name == "buffer":
                found.append(self.buffers.setdefault(own, len(self.buffers)))
            elif name == "name" and kind in NAMED:
                found.append(self._values.setdefault(own, len(self._values)))
            else:
                found.append(self.of(own))
        return tuple(found)


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    """The fields that code depends on: all but the origins."""
    left_out = {"origins", "name"} if kind is Nest else {"origins"}
    return tuple(one.name for one in fields(kind) if one.name not in left_out)


def form_of(nest: Nest, dtypes: Mapping[str, str], *sets: Set[str]) -> Form:
    """The form of a nest. `dtypes`: of each buffer. `sets`: buffers of which code depends on
    whether they are in them."""
    form = Form()
    structure = form.of(nest)
    about = tuple((dtypes[b], *(b in some for some in sets)) for b in form.buffers)
    form.key = structure, about
    return form


class Repeated(Generic[Emitted]):
    """The code of each form that a program has."""

    def __init__(self, renamed: Callable[[Emitted, Mapping[str, str]], Emitted | None]) -> None:
        """`renamed`: code for other buffers, by their names; None if it needs its own."""
        self._renamed = renamed
        self._known: dict[object, tuple[Form, Emitted]] = {}

    def code(self, form: Form, emitted: Callable[[], Emitted]) -> Emitted:
        """The code of an earlier nest of this form, for this nest's buffers; else newly emitted
        code."""
        known = self._known.get(form.key)
        if known is None:
            made = emitted()
            self._known[form.key] = form, made
            return made
        theirs, made = known
        found = self._renamed(made, dict(zip(theirs.buffers, form.buffers, strict=True)))
        return emitted() if found is None else found
