"""Workflow commands of GitHub Actions, which annotate the lines of a pull request.

Escaped as the runner reads them (`ActionCommand` in github.com/actions/runner). GitHub shows at
most ten annotations of a level and step, so those beyond are counted in the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.viewers.check.annotations import Annotation, Level, annotated
from tcw.viewers.check.result import TargetResult
from tcw.viewers.check.text import headline
from tcw.viewers.plain import plain_lines
from tcw.viewers.words import plural

MOST = 10
"""Annotations of one level that GitHub shows of one step."""
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def github(results: Sequence[TargetResult], root: str, below: str = "") -> str:
    """`root`, `below`: as of `annotated`."""
    found = annotated(results, root, below)
    lines = []
    left = 0
    for level, command in _COMMANDS.items():
        here = [one for one in found if one.level == level]
        lines += [_command(command, one) for one in here[:MOST]]
        left += len(here[MOST:])
    more = f"; {plural(left, 'annotation')} more in the log" if left else ""
    lines += [f"{_data(one)}" for one in (headline(results) + more,)]
    return "\n".join(lines) + "\n"


def _command(command: str, one: Annotation) -> str:
    where = {"file": one.file, "line": str(one.line), "title": one.title}
    given = ",".join(f"{name}={_property(value)}" for name, value in where.items())
    message = "\n".join(plain_lines(one.message))
    return f"::{command} {given}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    plain = "".join(plain_lines(text))
    return _data(plain).replace(":", "%3A").replace(",", "%2C")
