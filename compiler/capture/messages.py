"""The parts of torch's graph break messages, looked up by the formatted text.

torch raises an `Unsupported` that has only a text, made by
`torch._dynamo.exc.format_graph_break_message`. If one break led to another, the texts are joined,
first cause first.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable
from typing import Any

from tcw.compiler.protocol.error_words import first_line
from tcw.compiler.trace.torch_logs.logged_breaks import JOINED, Message

_KEPT = 20_000


def one_line(error: BaseException) -> str:
    """One line: the final failure first, then what led to it.

    `graph break in loop: Failed to trace builtin operator`, `backend='x' raised: ValueError: y`.
    """
    text = str(getattr(error, "msg", "") or error)
    parts = [first_line(part) for part in text.split(JOINED)][::-1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(parts) == 1 and parts[0].endswith(" raised:") and len(lines) > 1:
        parts.append(lines[1])
    elif type(error).__name__ == "FailOnRecompileLimitHit" and error.__cause__ is not None:
        parts.append(one_line(error.__cause__))
    return ": ".join(part.removesuffix(":") for part in parts if part) or type(error).__name__


class Messages:
    """The messages formatted so far, by text."""

    def __init__(self) -> None:
        self._known: dict[str, Message] = {}

    def keep(
        self, text: str, type: str, context: str, explanation: str, hints: Iterable[str]
    ) -> None:
        if len(self._known) > _KEPT:
            self._known.clear()
        self._known[text] = Message(type, str(context), str(explanation), tuple(map(str, hints)))

    def parts(self, error: BaseException) -> list[Message]:
        """The messages that an exception carries, first cause first; at least one."""
        text = str(getattr(error, "msg", "") or error)
        own_type = getattr(error, "gb_type", None) or ""
        return [
            self._known.get(part) or _unknown(part, error, own_type) for part in text.split(JOINED)
        ]


MESSAGES = Messages()
"""The messages of this process: torch formats them all in one function."""


def _unknown(text: str, error: BaseException, own_type: str) -> Message:
    """An exception that torch created without that function, such as a `UserError`."""
    kind: Any = getattr(error, "error_type", None)
    if own_type:
        name = own_type
    elif kind is not None:
        name = f"{type(error).__name__}: {getattr(kind, 'name', kind)}"
    else:
        name = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return Message(name, explanation=text.strip())


@functools.cache
def break_codes() -> dict[str, str]:
    """Break type -> `GB0170`, from the installed torch's registry; empty if it has none."""
    import torch._dynamo

    path = os.path.join(os.path.dirname(torch._dynamo.__file__ or ""), "graph_break_registry.json")
    try:
        with open(path, encoding="utf-8") as stream:
            registry: dict[str, list[dict[str, Any]]] = json.load(stream)
        return {entry["Gb_type"]: code for code, all in registry.items() for entry in all}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
