"""`tcw.budget.toml`: what was accepted for each target, a line a fact, for people to review.

    [block]
    torch = "2.13"
    graphs = 2
    kernels = 5

    [block.break]
    "GB0059 in Block.forward: print(x)" = 1

    [block."torch 2.14"]        # only what differs there
    kernels = 6

A fact that torch 2.14 does not have although the table above does is written as `"-"`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tcw.compiler.trace.output_file import OutputKind
from tcw.compiler.trace.plain_file import NotPlain, TooLarge, read_plain
from tcw.viewers.summary.budget import LISTED, Key
from tcw.viewers.summary.facts import NUMBERS, Fact, Value

NAME = "tcw.budget.toml"
BEGIN = "# What each target compiles to"
KIND = OutputKind("budget", lambda head: head.startswith(BEGIN.encode()))
MOST_BYTES = 8 << 20
GONE = "-"
"""The value of a fact that one version of torch does not have."""

HEAD = (
    f"{BEGIN}, one line a fact. Written by `tcw check --accept`; review it"
    "\n# like code. docs/check.md explains the facts.\n"
)


class BadBudget(ValueError):
    """A budget that cannot be read; the message names the file and says why."""


@dataclass
class Accepted:
    """The facts that were accepted for one target."""

    torch: str
    """The version under which they were first accepted, such as `2.13`."""
    facts: dict[Key, Value] = field(default_factory=dict)
    versions: dict[str, dict[Key, Value]] = field(default_factory=dict)
    """Other versions of torch -> the facts that differ there."""

    def of(self, torch: str) -> dict[Key, Value]:
        """What holds under this version."""
        merged = {**self.facts, **self.versions.get(torch, {})}
        return {key: value for key, value in merged.items() if value != GONE}

    def knows(self, torch: str) -> bool:
        return torch == self.torch or torch in self.versions

    def accept(self, torch: str, found: Iterable[Fact]) -> None:
        """Let exactly these facts hold under this version."""
        now = {fact.key: fact.value for fact in found}
        if torch == self.torch:
            self.facts = now
            return
        differing = {key: value for key, value in now.items() if self.facts.get(key) != value}
        gone: dict[Key, Value] = {key: GONE for key in self.facts if key not in now}
        self.versions[torch] = {**differing, **gone}


def read(file: Path) -> dict[str, Accepted]:
    """Target -> what was accepted; empty if there is no file. Raises `BadBudget`."""
    try:
        data = read_plain(file, MOST_BYTES)
    except FileNotFoundError:
        return {}
    except (NotPlain, TooLarge) as error:
        raise BadBudget(str(error)) from error
    except OSError as error:
        raise BadBudget(f"{file}: {error}") from error
    return parsed(file, data)


def parsed(file: Path, data: bytes) -> dict[str, Accepted]:
    """The budgets in a file's contents. Raises `BadBudget`."""
    if len(data) > MOST_BYTES:
        raise BadBudget(str(TooLarge(file, MOST_BYTES)))
    try:
        tables = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise BadBudget(f"{file}: {error}") from error
    return {name: _accepted(file, name, table) for name, table in tables.items()}


def _accepted(file: Path, name: str, table: Any) -> Accepted:
    if not isinstance(table, dict):
        raise BadBudget(f"{file}: {name} must be a table, [{name}]")
    rest = {key: value for key, value in table.items() if key != "torch"}
    versions = {key: rest.pop(key) for key in list(rest) if key.startswith("torch ")}
    accepted = Accepted(str(table.get("torch", "")), _facts(file, name, rest))
    for key, value in versions.items():
        if not isinstance(value, dict):
            raise BadBudget(f"{file}: [{name}.{json.dumps(key)}] must be a table")
        accepted.versions[key.removeprefix("torch ")] = _facts(file, name, value)
    return accepted


def _facts(file: Path, name: str, table: Mapping[str, Any]) -> dict[Key, Value]:
    found: dict[Key, Value] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            if key not in LISTED:
                known = ", ".join(LISTED)
                raise BadBudget(f"{file}: [{name}.{key}] is not one of {known}")
            found |= {(key, one): _value(file, name, one, two) for one, two in value.items()}
        else:
            if key.replace("-", " ") not in NUMBERS:
                raise BadBudget(f"{file}: {key} of {name} is not a fact{_meant(key)}")
            found["", key.replace("-", " ")] = _value(file, name, key, value)
    return found


def _meant(key: str) -> str:
    """`: did you mean kernels?`; "" if nothing is close."""
    close = get_close_matches(key.replace("-", " "), NUMBERS, n=1)
    return f": did you mean {close[0].replace(' ', '-')}?" if close else ""


def _value(file: Path, target: str, key: str, value: Any) -> Value:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise BadBudget(f"{file}: {key} of {target} must be a number or a text")
    return value


def text(budget: Mapping[str, Accepted]) -> str:
    """The file's text."""
    parts = [HEAD]
    for name, accepted in sorted(budget.items()):
        parts.append(_table([name], accepted.facts, [f"torch = {_text(accepted.torch)}"]))
        parts += [
            _table([name, f"torch {version}"], facts, [])
            for version, facts in sorted(accepted.versions.items())
        ]
    return "\n".join(parts)


def _table(path: list[str], facts: Mapping[Key, Value], first: list[str]) -> str:
    """Numbers, then a table a group, both in the order of a compile."""
    groups: dict[str, list[str]] = {"": first}
    for (group, name), value in facts.items():
        key = name.replace(" ", "-") if not group else name
        groups.setdefault(group, []).append(f"{_key(key)} = {_text(value)}")
    return "\n".join(
        f"[{'.'.join(map(_key, [*path, *filter(None, [group])]))}]\n" + "\n".join(lines) + "\n"
        for group, lines in groups.items()
    )


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: Value) -> str:
    """As TOML: a basic string has JSON's escapes. What does not print (and could hide something
    from a reviewer) is escaped."""
    if isinstance(value, str):
        if '"' in value and "'" not in value and value.isprintable():
            return f"'{value}'"
        quoted = json.dumps(value, ensure_ascii=False)
        return "".join(one if one.isprintable() else f"\\U{_scalar(one):08x}" for one in quoted)
    return f"{value:_}" if isinstance(value, int) else f"{value:.3g}"


def _scalar(character: str) -> int:
    """Its code point; U+FFFD for half a surrogate pair, which TOML cannot hold."""
    point = ord(character)
    return 0xFFFD if 0xD800 <= point <= 0xDFFF else point
