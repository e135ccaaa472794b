"""The input of the advice: a graph break, with the user's statement parsed from the source."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tcw.compiler.trace.records import Advice, SourceChange
from tcw.compiler.trace.torch_logs.logged_breaks import Message

Advised = str | Advice | tuple[Advice, ...]
"""A text alone is advice without code; () is none."""


def as_advice(found: Advised) -> tuple[Advice, ...]:
    """The advice found, as `Advice` items."""
    if isinstance(found, str):
        found = Advice(text=found)
    return found if isinstance(found, tuple) else (found,)


BUILTIN = re.compile(r"^builtin (\w+)\b")
"""torch's context of a break at a builtin function: its name."""
SKIPPED = re.compile(r"^module: (?P<module>[\w.]+), qualname: (?P<name>[\w.]+)")
"""torch's context of a break at a function that it skips."""


@dataclass(frozen=True)
class Broken(Message):
    """One graph break: torch's message and the user's source."""

    lines: tuple[str, ...] = ()
    """Source from the first line of the broken instruction on, as far as its block may reach."""
    column: int | None = None
    end_column: int | None = None
    """The instruction's byte range in the first line. The end is None if it is on a later line."""
    then: tuple[str, ...] = ()
    """Types of the breaks that this one led to."""
    tensors: tuple[tuple[str, str], ...] = ()
    """(name, dtype) of each local variable that holds a tensor."""
    library: bool = False
    """Whether the line is in torch or an installed package: not for the user to edit."""
    inside: bool = False
    """Whether torch reports it inside a call of that line, in torch's or Python's own code."""
    file: str = ""
    line: int = 0
    """Where `lines` start."""

    @property
    def expression(self) -> str:
        """The source of the instruction itself; "" if it spans several lines."""
        if not self.lines or self.column is None or self.end_column is None:
            return ""
        part = self.lines[0].encode()[self.column : self.end_column]
        return part.decode(errors="replace")

    @property
    def statement(self) -> ast.stmt | None:
        """The statement that starts on the first line, with its block; None if there is none."""
        return parse(self.lines)

    def with_expression(self, text: str) -> str:
        """The whole statement with another text for the instruction; "" if it has a block of its
        own, or the instruction spans several lines."""
        statement = self.statement
        if not self.expression or statement is None or hasattr(statement, "body"):
            return ""
        line = self.lines[0].encode()
        changed = line[: self.column] + text.encode() + line[self.end_column :]
        rest = self.dedented[1 : statement.end_lineno]
        return "\n".join((changed.decode(errors="replace").strip(), *rest))

    def with_condition(self, text: str) -> Broken:
        """The same break with another text for the instruction, whose statement may have a block of
        its own."""
        line = self.lines[0].encode() if self.lines else b""
        changed = line[: self.column] + text.encode() + line[self.end_column :]
        return replace(self, lines=(changed.decode(errors="replace"), *self.lines[1:]))

    def replaced_to(self, last: ast.AST, start: int, text: str) -> tuple[SourceChange, ...]:
        """New lines for those from the first to the end of the statement `last`, which starts
        `start` lines further on; () if the file is not known."""
        if not self.file:
            return ()
        indent = self.lines[0][: _indent(self.lines[0])]
        end = self.line + start + getattr(last, "end_lineno", 1) - 1
        change = SourceChange(
            file=self.file, line=self.line, end_line=end, text=textwrap.indent(text, indent)
        )
        return (change,)

    @property
    def dedented(self) -> tuple[str, ...]:
        """The lines, less the indent of the first."""
        indent = _indent(self.lines[0]) if self.lines else 0
        return tuple(line[indent:] if not line[:indent].strip() else line for line in self.lines)

    @property
    def following(self) -> Iterator[tuple[int, ast.stmt]]:
        """The statements after this one in its block, as far as `lines` has them, each with its
        first line, from 0."""
        lines = self.lines
        while statement := parse(lines):
            lines = lines[statement.end_lineno :]
            while lines and not lines[0].strip():
                lines = lines[1:]
            if not lines or _indent(lines[0]) != _indent(self.lines[0]):
                return
            following = parse(lines)
            if following is not None:
                yield len(self.lines) - len(lines), following

    @property
    def rest(self) -> Iterator[ast.AST]:
        """All nodes of the statements after this one in its block."""
        for _, statement in self.following:
            yield from ast.walk(statement)


@functools.lru_cache(maxsize=256)
def parse(lines: tuple[str, ...]) -> ast.stmt | None:
    """The first statement of these lines, at any indent; None if none starts there."""
    if not lines or not lines[0].strip():
        return None
    indent = _indent(lines[0])
    block = [lines[0][indent:]]
    whole: ast.stmt | None = None
    for line in (*lines[1:], None):
        parsed = only_statement("\n".join(block))
        whole = parsed or whole
        if line is None:
            break
        continues = not line.strip() or _indent(line) > indent
        branch = line[indent:].startswith(("else:", "elif ", ")", "]", "}"))
        if parsed is not None and not continues and not branch:
            break
        block.append(line[indent:] if line[:indent].strip() == "" else line)
    return whole


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def only_statement(source: str) -> ast.stmt | None:
    """The statement that is all of this text; None for any other text."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return body[0] if len(body) == 1 else None


def calls(expression: str, *names: str) -> bool:
    """Whether an expression is a call to one of these names: `print`, `torch.save`."""
    try:
        node = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(node, ast.Call) and ast.unparse(node.func) in names
