"""Breakpoints as a person writes them: `model.py:19`, `op:softmax`, `fuse:bytes>=1e6`."""

from __future__ import annotations

import os
import re
from typing import Any, Literal

from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.protocol.decision import ENGINES, engine_of, split_id
from tcw.compiler.protocol.error_words import meant
from tcw.compiler.protocol.stages import STAGES

EVENTS: dict[str, dict[str, Any]] = {
    "break": {"kind": "break"},
    "recompile": {"kind": "recompile"},
    "miss": {"kind": "miss"},
}
DECISIONS = (
    "fuse", "save", "inline", "split", "column", "reuse", "order", "library", "layout", "lowering",
    "tile", "mask", "pass",
)  # fmt: skip
"""Decision kinds with their own keyword; `decision:KIND` accepts any kind."""

WORDS = (
    "FILE:LINE", "op:NAME", "stage:STAGE", "rejection", "first-rejection", "decision",
    *DECISIONS, *EVENTS,
)  # fmt: skip
"""The forms of a breakpoint."""

_CONDITION = re.compile(r"(?P<name>[\w.]*)\s*(?P<sign>>=|<=|=)\s*(?P<value>\S+)")
_LINE = re.compile(r"(?:(?P<file>.*):)?(?P<line>\d+)")


class BreakpointError(Exception):
    """The text is not a breakpoint; the message says why, and what would be."""


def parse(text: str, *, number: int, file: str = "") -> Breakpoint:
    """The breakpoint that `text` denotes.

    `19` and `:19` are lines of `file`. Decisions and rejections take conditions after a colon:
    `fuse:saved_bytes>=1048576,rule=domain`. A decision's id stands for that decision only. Raises
    `BreakpointError`.
    """
    text = text.strip()
    word, colon, rest = (part.strip() for part in text.partition(":"))
    if engine_of(text) in ENGINES and all(split_id(text)) and not _LINE.fullmatch(text):
        return Breakpoint(number=number, kind="decision", id=text)
    if word == "op" and colon:
        if not rest:
            raise BreakpointError(f"{text}: give part of a node's name, such as op:softmax")
        return Breakpoint(number=number, kind="op", op=rest)
    if word == "stage" and colon:
        if rest not in STAGES:
            hint = meant(rest, STAGES, f"There are {', '.join(STAGES)}")
            raise BreakpointError(f"{text}: there is no stage {rest!r}. {hint}")
        return Breakpoint(number=number, kind="stage", stage=rest)
    if word == "decision":
        kind, _, conditions = rest.partition(":")
        if _CONDITION.fullmatch(kind.split(",")[0].strip()):
            kind, conditions = "", rest
        return _decision(text, conditions, number=number, kind="decision", decision=kind.strip())
    if word in DECISIONS:
        return _decision(text, rest, number=number, kind="decision", decision=word)
    if word in ("rejection", "first-rejection"):
        once = word == "first-rejection"
        return _decision(text, rest, number=number, kind="rejection", once=once)
    if word in EVENTS and not colon:
        return Breakpoint(number=number, **EVENTS[word])
    line = _LINE.fullmatch(text)
    if line is not None:
        return Breakpoint(
            number=number, kind="line", file=_file(line["file"] or file), line=int(line["line"])
        )
    hint = meant(word, WORDS, f"There are {', '.join(WORDS)}")
    raise BreakpointError(f"{text!r} is not a breakpoint. {hint}")


def _file(name: str) -> str:
    """The absolute path of an existing file; else the text as written, matched as a suffix."""
    return os.path.abspath(name) if os.path.exists(name) else name


def _decision(
    text: str,
    conditions: str,
    *,
    number: int,
    kind: Literal["decision", "rejection"],
    decision: str = "",
    once: bool = False,
) -> Breakpoint:
    found: dict[str, Any] = {}
    for condition in filter(None, (part.strip() for part in conditions.split(","))):
        match = _CONDITION.fullmatch(condition)
        if match is None:
            raise BreakpointError(f"{text}: {condition!r} is neither NAME>=NUMBER nor rule=NAME")
        name, sign, value = match["name"], match["sign"], match["value"]
        if sign == "=" and name in ("rule", "op"):
            found[name] = value
            continue
        try:
            limit = float(value)
        except ValueError:
            raise BreakpointError(f"{text}: {value!r} is not a number") from None
        if found.setdefault("number_name", name) != name:
            raise BreakpointError(
                f"{text}: only one number can be tested, and {name} is a second one"
            )
        if sign != "<=":
            found["at_least"] = limit
        if sign != ">=":
            found["at_most"] = limit
    return Breakpoint(number=number, kind=kind, decision=decision, once=once, **found)
