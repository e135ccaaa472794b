"""The user's source as a tree, and changes of it for a fix that is more than one statement."""

from __future__ import annotations

import ast
import functools
import linecache
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tcw.compiler.protocol.edits.edit import EditError
from tcw.compiler.protocol.edits.source_text import (
    Replacement,
    SourceText,
    end_of,
    span_of,
)
from tcw.compiler.trace.records import Advice, SourceChange

Node = TypeVar("Node", bound=ast.AST)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class UserSource:
    """A file that Python can parse."""

    file: str
    text: SourceText

    @property
    def tree(self) -> ast.Module:
        return self.text.tree

    def function_at(self, line: int) -> FunctionNode | None:
        """The innermost function around a line."""
        return max(
            (one for one in self._around(line) if isinstance(one, FunctionNode)),
            key=lambda one: one.lineno,
            default=None,
        )

    def class_named(self, name: str) -> ast.ClassDef | None:
        return next((one for one in self.all(ast.ClassDef) if one.name == name), None)

    @staticmethod
    def method(owner: ast.ClassDef | ast.Module, name: str) -> FunctionNode | None:
        methods = (one for one in owner.body if isinstance(one, FunctionNode))
        return next((one for one in methods if one.name == name), None)

    def all(self, kind: type[Node]) -> Iterator[Node]:
        return (one for one in ast.walk(self.tree) if isinstance(one, kind))

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """A node's parent, the parent's parent, and so on."""
        while (above := self.parents.get(node)) is not None:
            yield above
            node = above

    def _around(self, line: int) -> Iterator[ast.AST]:
        for node in ast.walk(self.tree):
            end = getattr(node, "end_lineno", None)
            if end is not None and getattr(node, "lineno", end + 1) <= line <= end:
                yield node

    def replaced(self, *changes: tuple[ast.AST, str]) -> tuple[SourceChange, ...]:
        """Each of these nodes by a new text, as changes of whole lines; () if two overlap."""
        return self.edited([Replacement(span_of(node), text) for node, text in changes])

    def edited(self, changes: Sequence[Replacement]) -> tuple[SourceChange, ...]:
        """The lines that these replacements change."""
        try:
            after = self.text.changed(list(changes)).split("\n")
            ast.parse("\n".join(after))
        except (EditError, SyntaxError, ValueError, UnicodeDecodeError):
            return ()
        found: list[SourceChange] = []
        for span in sorted({(one.span.line, one.span.end_line) for one in changes}):
            if found and span[0] <= found[-1].end_line:
                first, last = found.pop().line, max(span[1], span[0])
            else:
                first, last = span
            text = "\n".join(after[first - 1 : last])
            found.append(SourceChange(file=self.file, line=first, end_line=last, text=text))
        return tuple(found)

    def above(self, line: int, text: str) -> SourceChange:
        """New lines above this one, at its indent."""
        there = self.text.lines[line - 1]
        indent = there[: len(there) - len(there.lstrip())]
        return SourceChange(
            file=self.file, line=line, end_line=line - 1, text=textwrap.indent(text, indent)
        )

    def below(self, statement: ast.stmt, text: str) -> SourceChange:
        """New lines below a statement, at its indent."""
        last, indent = statement.end_lineno or statement.lineno, " " * statement.col_offset
        return SourceChange(
            file=self.file, line=last + 1, end_line=last, text=textwrap.indent(text, indent)
        )

    def with_keyword(self, call: ast.Call, name: str, value: str) -> tuple[SourceChange, ...]:
        """A call with this keyword argument, in place of what it has under the name."""
        given = next((one for one in call.keywords if one.arg == name), None)
        if given is not None:
            return self.replaced((given.value, value))
        arguments: list[ast.AST] = [*call.args, *call.keywords]
        last = max(arguments, key=lambda one: span_of(one).end_line * 10_000
                   + span_of(one).end_column, default=None)  # fmt: skip
        if last is not None:
            return self.edited([Replacement(end_of(last), f", {name}={value}")])
        return self.replaced((call, f"{ast.unparse(call.func)}({name}={value})"))


@functools.lru_cache(maxsize=64)
def _parsed(file: str, text: str) -> UserSource | None:
    try:
        return UserSource(file, SourceText(text))
    except EditError:
        return None


def user_source(file: str) -> UserSource | None:
    """The source of a file; None if it cannot be read or parsed."""
    text = "".join(linecache.getlines(file))
    return _parsed(file, text) if text else None


def by_changes(
    text: str, changes: Sequence[SourceChange], setting: str = "", effect: str = ""
) -> Advice:
    """Advice that changes the source in several places, or elsewhere than at the finding: its code
    is the new lines. `setting`: a torch setting that it needs besides."""
    lines = [textwrap.dedent(change.text).strip("\n") for change in changes]
    return Advice(
        text=text,
        code="\n".join(filter(None, (setting, *lines))),
        changes=tuple(changes),
        effect=effect,
    )
