"""The programs of `advice_programs/`, and what is true of each, from its docstring.

    gb: the type of the break in torch's graph-break registry
    cause: break at `the line`           one line a place: break, recompile, eager or failure
    fix: `a line` -> `lines instead`     what removes it and keeps the results; "" removes the line,
                                         "; " joins lines, and -> may start the next
    fix: set torch._dynamo.config.x = 1  a setting
    fix: compile dynamic=True            options of torch.compile
    fix: before x = x.contiguous()       a line before each call
    fix: none: why                       nothing that can be pasted
    train: yes                           forward and backward

Lines of `fix` belong together. `advice.py --check` runs them. This module needs no torch.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("advice_programs")
KINDS = ("break", "recompile", "eager", "failure")


@dataclass(frozen=True)
class Fix:
    """What a user would paste."""

    patch: str = ""
    """A unified diff of the program's file."""
    settings: tuple[str, ...] = ()
    """Lines that run before `torch.compile`."""
    compile: dict[str, Any] = field(default_factory=dict)
    """Options of `torch.compile`."""
    before_calls: tuple[str, ...] = ()
    """Lines that run before each call, with its arguments by name."""


@dataclass(frozen=True)
class Cause:
    kind: str
    line: int


@dataclass(frozen=True)
class Case:
    """A program, with the truth about it."""

    file: Path
    about: str
    gb: str
    causes: tuple[Cause, ...]
    fixes: tuple[str, ...]
    """One way that works; empty where there is none."""
    without_fix: str
    """Why there is none."""
    train: bool

    @property
    def name(self) -> str:
        return self.file.stem

    def reference(self) -> Fix:
        """`fixes`, to be pasted."""
        text = self.file.read_text(encoding="utf-8")
        body = text[_end_of_docstring(text) :]
        head, changed = text[: len(text) - len(body)], body
        settings: list[str] = []
        before: list[str] = []
        options: dict[str, Any] = {}
        for fix in self.fixes:
            kind, _, rest = fix.partition(" ")
            if kind == "set":
                settings.append(rest)
            elif kind == "before":
                before.append(rest)
            elif kind == "compile":
                options.update(eval(f"dict({rest})"))
            else:
                changed = _replaced(changed, fix)
        lines = (head + one for one in (body, changed))
        old, new = (one.splitlines(keepends=True) for one in lines)
        diff = difflib.unified_diff(old, new, self.file.name, self.file.name)
        return Fix("".join(diff), tuple(settings), options, tuple(before))


def _replaced(body: str, fix: str) -> str:
    match = re.fullmatch(r"`(.+?)` -> `(.*)`", fix)
    if match is None:
        raise ValueError(f"not a fix: {fix}")
    old, new = match[1], match[2]
    if f"\n{old}\n" not in body:
        raise ValueError(f"no line {old!r}")
    indent = " " * (len(new) - len(new.lstrip()))
    lines = "\n" + new.replace("; ", "\n" + indent) + "\n" if new else "\n"
    return body.replace(f"\n{old}\n", lines, 1)


def _end_of_docstring(text: str) -> int:
    lines = text.splitlines(keepends=True)
    first = ast.parse(text).body[0]
    return sum(map(len, lines[: first.end_lineno])) - 1


def cases(pattern: str = "") -> Iterator[Case]:
    """The programs whose name contains `pattern`, or one of several with commas between."""
    for file in sorted(PROGRAMS.glob("*.py")):
        if any(part in file.stem for part in pattern.split(",")):
            yield case_of(file)


def case_of(file: Path) -> Case:
    """The case in a program's docstring; ValueError if it is not in order."""
    text = file.read_text(encoding="utf-8")
    said = re.sub(r"\n +-> ", " -> ", ast.get_docstring(ast.parse(text)) or "")
    about, *rest = said.splitlines()
    fields: dict[str, list[str]] = {}
    for line in filter(None, rest):
        name, colon, value = line.partition(": ")
        if not colon or name not in ("gb", "cause", "fix", "train"):
            raise ValueError(f"{file.name}: {line}")
        fields.setdefault(name, []).append(value)
    body_line = text[: _end_of_docstring(text)].count("\n") + 1
    numbered = list(enumerate(text.splitlines(), 1))[body_line:]
    causes = []
    for cause in fields["cause"]:
        match = re.fullmatch(rf"({'|'.join(KINDS)}) at `(.+)`", cause)
        lines = [number for number, line in numbered if match and line.strip() == match[2]]
        if match is None or not lines:
            raise ValueError(f"{file.name}: {cause}")
        causes.append(Cause(match[1], lines[0]))
    fixes = fields["fix"]
    none = fixes[0].startswith("none: ")
    return Case(
        file=file,
        about=about,
        gb=fields.get("gb", [""])[0],
        causes=tuple(causes),
        fixes=() if none else tuple(fixes),
        without_fix=fixes[0].removeprefix("none: ") if none else "",
        train="train" in fields,
    )
