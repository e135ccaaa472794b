"""Values described without running any code of the user's: a `__repr__` may lie, raise or hang."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

LIMIT = 200
_ITEMS = 16

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))


def describe(value: object) -> str:
    """repr of built-in values and containers of them; the class's name for anything else."""
    return _cut(_describe(value, 0), LIMIT)


def _describe(value: object, depth: int) -> str:
    kind = type(value)
    if kind in _PLAIN:
        if kind is int:
            return _whole(value)
        if isinstance(value, str | bytes):
            return repr(value[:LIMIT])
        return repr(value)
    if depth > 4:
        return "…"
    if kind in (list, tuple, set, frozenset) and isinstance(value, list | tuple | set | frozenset):
        shown = [_describe(item, depth + 1) for item in islice(value, _ITEMS)]
        shown += ["…"] * (len(value) > _ITEMS)
        inside = ", ".join(shown)
        if kind is list:
            return f"[{inside}]"
        if kind is tuple:
            return f"({inside},)" if len(shown) == 1 else f"({inside})"
        return f"{{{inside}}}" if shown else f"{class_name(value)}()"
    if kind is dict and isinstance(value, Mapping):
        pairs = [
            f"{_describe(key, depth + 1)}: {_describe(item, depth + 1)}"
            for key, item in islice(value.items(), _ITEMS)
        ]
        pairs += ["…"] * (len(value) > _ITEMS)
        return "{" + ", ".join(pairs) + "}"
    if class_module(value) == "torch" and class_name(value) in ("dtype", "device", "Size"):
        return repr(value)[:LIMIT]
    return f"<{class_name(value)}>"


def _whole(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # more digits than Python converts
        return "<int>"


def class_name(value: object) -> str:
    """Name of the value's class, whatever its metaclass says."""
    return str(type.__getattribute__(type(value), "__name__"))[:LIMIT]


def class_module(value: object) -> str:
    """Module of the value's class; "" if it has none."""
    found = type.__getattribute__(type(value), "__module__")
    return found if isinstance(found, str) else ""


def message_of(error: BaseException, limit: int = 4000) -> str:
    """str() of an exception; its `__str__` may be the user's, and raise or return no text."""
    try:
        text = str(error)
    except BaseException as second:  # whatever it raises, there is no message
        return f"(its message could not be read: {class_name(second)})"
    return _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
