"""Values described without running any code of the user's: a `__repr__` may lie, raise or hang."""

from __future__ import annotations

from collections.abc import Mapping

LIMIT = 200

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))


def describe(value: object, limit: int = LIMIT) -> str:
    """repr of built-in values and containers of them; the class's name for anything else."""
    text = _describe(value, 0, limit)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _describe(value: object, depth: int, limit: int) -> str:
    kind = type(value)
    if kind in _PLAIN:
        if kind is int:
            return _whole(value)
        if isinstance(value, str | bytes):
            return repr(value[:limit])
        return repr(value)
    if depth > 4:
        return "…"
    if kind in (list, tuple, set, frozenset) and isinstance(value, list | tuple | set | frozenset):
        shown = []
        for number, item in enumerate(value):
            if number == 16:
                shown.append("…")
                break
            shown.append(_describe(item, depth + 1, limit))
        inside = ", ".join(shown)
        if kind is list:
            return f"[{inside}]"
        if kind is tuple:
            return f"({inside},)" if len(shown) == 1 else f"({inside})"
        return f"{{{inside}}}" if shown else f"{class_name(value)}()"
    if kind is dict and isinstance(value, Mapping):
        pairs = []
        for number, (key, item) in enumerate(value.items()):
            if number == 16:
                pairs.append("…")
                break
            pairs.append(f"{_describe(key, depth + 1, limit)}: {_describe(item, depth + 1, limit)}")
        return "{" + ", ".join(pairs) + "}"
    if class_module(value) == "torch" and class_name(value) in ("dtype", "device", "Size"):
        return repr(value)[:limit]
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
    return text if len(text) <= limit else text[: limit - 1] + "…"
