"""A source text with its syntax tree; replacing spans keeps every line number."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from tcw.compiler.protocol.edits.edit import EditError


@dataclass(frozen=True)
class Span:
    """A range of the text: lines from 1, columns in bytes, as in `ast`."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Replacement:
    """The new text of a span: one line."""

    span: Span
    text: str
    is_expression: bool = True
    """Whether it can be parenthesised if the span has several lines; else the span must have
    one."""


class SourceText:
    """A parsed file. Raises `EditError` if Python cannot parse it."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about the user's escapes are not ours
                self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise EditError(f"Python cannot parse the file: {error}") from error

    def statement(self, line: int, *wanted: type[ast.stmt]) -> ast.stmt:
        """The innermost statement on this line; of several, the first wanted one, else the last."""
        nodes = [
            node for node in ast.walk(self.tree) if isinstance(node, ast.stmt) and _on(node, line)
        ]
        if not nodes:
            raise EditError(f"no statement is on line {line}")
        least = min(map(_lines, nodes))
        inner = sorted(
            (node for node in nodes if _lines(node) == least), key=lambda n: n.col_offset
        )
        return next((one for one in inner if isinstance(one, wanted)), inner[-1])

    def function_of(self, statement: ast.stmt) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """The function whose own body has the statement, not a block inside it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and statement in node.body:
                return node
        raise EditError("it is not directly in the body of a function")

    def calls(self, line: int) -> Iterator[ast.Call]:
        """The calls on this line, outer ones first."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _on(node, line):
                yield node

    def changed(self, changes: list[Replacement]) -> str:
        """The text with these changes, which do not overlap."""
        lines = list(self.lines)
        ordered = sorted(
            changes,
            key=lambda replacement: (replacement.span.line, replacement.span.column),
            reverse=True,
        )
        for change in ordered:
            span, text = change.span, change.text
            more = span.end_line - span.line
            if more and not change.is_expression:
                raise EditError("it spans several lines")
            before = lines[span.line - 1].encode()[: span.column].decode()
            after = lines[span.end_line - 1].encode()[span.end_column :].decode()
            if not more:
                lines[span.line - 1] = before + text + after
                continue
            lines[span.line - 1] = f"{before}({text}"
            lines[span.line : span.end_line - 1] = [""] * (more - 1)
            lines[span.end_line - 1] = f"){after}"
        return "\n".join(lines)


def span_of(node: ast.AST) -> Span:
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def start_of(node: ast.AST, length: int = 0) -> Span:
    """The first bytes of a node; by default an empty span, for inserting before it."""
    span = span_of(node)
    return Span(span.line, span.column, span.line, span.column + length)


def end_of(node: ast.AST) -> Span:
    """The empty span after a node."""
    span = span_of(node)
    return Span(span.end_line, span.end_column, span.end_line, span.end_column)


def dotted(node: ast.expr) -> str:
    """`torch.compiler.disable` for such an expression, "" for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _on(node: ast.AST, line: int) -> bool:
    span = span_of(node)
    first = min((span.line, *(one.lineno for one in getattr(node, "decorator_list", ()))))
    return bool(first <= line <= span.end_line)


def _lines(node: ast.AST) -> int:
    span = span_of(node)
    return span.end_line - span.line
