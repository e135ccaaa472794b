"""Failing facts and improvements, each at a line, as code hosts show them in the source; and as
workflow commands of GitHub Actions."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tcw.viewers.check.result import TargetResult, accepting
from tcw.viewers.check.text import headline
from tcw.viewers.plain import plain_lines
from tcw.viewers.summary.budget import GROUPS, LISTED, FactChange
from tcw.viewers.words import plural

Level = Literal["error", "warning", "note"]

RULES = {
    "number": "A number of the compile is not within its tolerance",
    **{group: f"A {GROUPS[group].words} is not as accepted" for group in LISTED},
    "target": "A target could not be checked",
}
"""Rule id -> what it says. A graph break has torch's id (`GB0059`) as its rule."""

_GB = re.compile(r"GB\d{4}\b")


@dataclass(frozen=True)
class Annotation:
    """One thing to show at one line."""

    level: Level
    rule: str
    target: str
    file: str
    """Relative to the repository, unless it is outside it."""
    line: int
    title: str
    message: str
    identity: str
    """Identifies the fact in every run, wherever its line moves."""


def annotated(results: Sequence[TargetResult], root: str = "", below: str = "") -> list[Annotation]:
    """The most important first. `root`: the repository's folder, which paths are relative to;
    `below`: the project's folder in it, "" if that is the same."""
    placed = [replace(result, file=os.path.join(below, result.file)) for result in results]
    found = [annotation for result in placed for annotation in _of(result, root)]
    order: tuple[Level, ...] = ("error", "warning", "note")
    return sorted(found, key=lambda annotation: order.index(annotation.level))


def _of(result: TargetResult, root: str) -> Iterator[Annotation]:
    if result.outcome in ("failed", "new", "interrupted"):
        words = {
            "failed": result.failure,
            "new": f"nothing is accepted yet: {accepting(result)}",
            "interrupted": "the check was interrupted",
        }[result.outcome]
        file, line = result.file, 1
        if result.failed_at is not None:
            file, line = relative(result.failed_at.file, root), result.failed_at.line
        yield _annotation(result, "error", "target", file, line, words, result.outcome)
    for change in result.changes:
        yield _change(result, change, root)


def _change(result: TargetResult, change: FactChange, root: str) -> Annotation:
    """At the fact's own line, else where the most important effect is."""
    level: Level = "error" if change.fails else "warning"
    if change.standing == "better" or change.tolerance.advice:
        level = "note"
    gb = _GB.match(change.name) if change.group == "break" else None
    effect = result.main_effect if change.fails else None
    file, line = change.file, change.line
    if not line and effect is not None and effect.line is not None and not effect.line.gone:
        file, line = effect.line.file, effect.line.line
    words = [change.words]
    if effect is not None:
        words += [f"what changed: {effect.words}", f"because {effect.cause}"][
            : 1 + bool(effect.cause)
        ]
    return _annotation(
        result,
        level,
        gb[0] if gb else change.group or "number",
        relative(file, root) if line else result.file,
        line or 1,
        "\n".join(words),
        f"{change.group}/{change.name}",
    )


def _annotation(
    result: TargetResult, level: Level, rule: str, file: str, line: int, message: str, what: str
) -> Annotation:
    identity = hashlib.sha256(f"{result.name}\0{rule}\0{what}".encode(errors="replace"))
    return Annotation(
        level, rule, result.name, file, max(1, line), f"tcw check: {result.name}", message,
        identity.hexdigest()[:32],
    )  # fmt: skip


def relative(file: str, root: str) -> str:
    """The file below `root`, or as it is."""
    return file.removeprefix(f"{root}/") if root else file


MOST = 10
"""Annotations of one level that GitHub shows of one step."""
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def github(results: Sequence[TargetResult], root: str, below: str = "") -> str:
    """`root`, `below`: as of `annotated`."""
    found = annotated(results, root, below)
    lines = []
    left = 0
    for level, command in _COMMANDS.items():
        here = [annotation for annotation in found if annotation.level == level]
        lines += [_command(command, annotation) for annotation in here[:MOST]]
        left += len(here[MOST:])
    more = f"; {plural(left, 'annotation')} more in the log" if left else ""
    lines += [f"{_data(one)}" for one in (headline(results) + more,)]
    return "\n".join(lines) + "\n"


def _command(command: str, annotation: Annotation) -> str:
    where = {"file": annotation.file, "line": str(annotation.line), "title": annotation.title}
    given = ",".join(f"{name}={_property(value)}" for name, value in where.items())
    message = "\n".join(plain_lines(annotation.message))
    return f"::{command} {given}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    plain = "".join(plain_lines(text))
    return _data(plain).replace(":", "%3A").replace(",", "%2C")
