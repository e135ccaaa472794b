"""What every object of `--json` is made of: structs that are filled from records and summaries by
the names of their fields, and from which the published schemas are generated."""

from __future__ import annotations

from typing import Any, Protocol, Self

import msgspec


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
