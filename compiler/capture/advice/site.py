"""The place of a graph break in the tree of its file."""

from __future__ import annotations

import ast
import builtins
import functools
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tcw.compiler.capture.advice.broken import Broken
from tcw.compiler.capture.advice.user_source import (
    FunctionNode,
    UserSource,
    by_changes,
    user_source,
)
from tcw.compiler.protocol.edits.edit import EditError
from tcw.compiler.protocol.edits.source_text import dotted
from tcw.compiler.trace.records import Advice, SourceChange

FACTORIES = ("empty", "zeros", "ones", "full", "rand", "randn", "arange", "tensor")
"""Functions of torch that make a tensor which nothing else refers to; also with `_like`."""


@dataclass(frozen=True)
class Site:
    """A statement of the user's that breaks, and the instruction in it."""

    source: UserSource
    function: FunctionNode
    """The innermost function around it."""
    statement: ast.stmt
    expression: ast.expr | None
    """None if the instruction is no expression of one line."""

    def instead(
        self, text: str, *pairs: tuple[ast.AST, str], effect: str = ""
    ) -> tuple[Advice, ...]:
        """Advice to write these texts in place of these nodes; () if that is not possible."""
        changes = self.source.replaced(*pairs)
        return (by_changes(text, changes, effect=effect),) if changes else ()

    def without(self, statement: ast.stmt) -> SourceChange:
        """Without a statement of its block."""
        alone = getattr(self.source.parents.get(statement), "body", None) == [statement]
        last = statement.end_lineno or statement.lineno
        return self.lines(statement.lineno, last, "pass" if alone else "")

    def lines(self, first: int, last: int, text: str) -> SourceChange:
        """These lines by a text at the indent of the statement."""
        indent = " " * self.statement.col_offset
        text = "\n".join(indent + line if line else line for line in text.split("\n"))
        return SourceChange(file=self.source.file, line=first, end_line=last, text=text)

    def dedented(self, first: int, last: ast.stmt) -> str | None:
        """The lines from this one to the end of a statement, without their indent; None if they
        have a text over several lines, which another indent would change."""
        end = last.end_lineno or last.lineno
        texts = (*self.source.all(ast.Constant), *self.source.all(ast.JoinedStr))
        if any(one.lineno != one.end_lineno and first <= one.lineno <= end for one in texts):
            return None
        return textwrap.dedent("\n".join(self.source.text.lines[first - 1 : end]))

    @property
    def first_line(self) -> int:
        """Where a line above the function, or its class, goes."""
        top = self.outermost
        decorators: list[ast.expr] = getattr(top, "decorator_list", [])
        return min([top.lineno, *(one.lineno for one in decorators)])

    @property
    def outermost(self) -> ast.stmt:
        """The statement of the module that the break is in."""
        around = {self.statement, *self.source.up(self.statement)}
        return next(one for one in self.source.tree.body if one in around)

    @functools.cached_property
    def locals(self) -> set[str]:
        """The names that the functions around the break bind."""
        names: set[str] = set()
        for node in (self.statement, *self.source.up(self.statement)):
            if isinstance(node, FunctionNode):
                names.update(_bound(node))
        return names

    @functools.cached_property
    def imports(self) -> dict[str, str]:
        """Name -> what the module imports under it: `np` -> `numpy`."""
        found = {}
        for node in self.source.tree.body:
            if isinstance(node, ast.Import):
                for name in node.names:
                    whole = name.name if name.asname else name.name.partition(".")[0]
                    found[name.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for name in node.names:
                    found[name.asname or name.name] = f"{node.module}.{name.name}"
        return found

    def qualified(self, node: ast.expr) -> str:
        """`numpy.lcm` for `np.lcm`, where `np` is numpy; "" if it is not imported."""
        first, point, rest = dotted(node).partition(".")
        if first in self.locals or first not in self.imports:
            return ""
        return f"{self.imports[first]}{point}{rest}"

    @functools.cached_property
    def fixed(self) -> set[str]:
        """Names that the module binds once, and builtins."""
        times = Counter(
            name
            for node in self.source.tree.body
            for name in (
                _bound(node) if not isinstance(node, FunctionNode | ast.ClassDef) else [node.name]
            )
        )
        changed = {name for node in self.source.all(ast.Global) for name in node.names}
        once = {name for name, count in times.items() if count == 1}
        return (once | (set(dir(builtins)) - set(times))) - changed

    def reads_only_fixed(self, node: ast.AST, own: Collection[str] = ()) -> bool:
        """Whether all names that it reads, besides its own, mean the same in every call."""
        return all(
            name.id in self.fixed and name.id not in self.locals
            for name in ast.walk(node)
            if isinstance(name, ast.Name) and name.id not in own
        )

    def new_name(self, wish: str) -> str:
        """A name that the file does not use yet."""
        used = {node.id for node in self.source.all(ast.Name)} | self.fixed | self.locals
        while wish in used:
            wish += "_"
        return wish

    def made_here(self, name: ast.expr) -> ast.Call | None:
        """The call of torch that made the tensor under this local name, if nothing used the name
        before this statement: no other name refers to the tensor."""
        body = getattr(self.source.parents.get(self.statement), "body", ())
        if not isinstance(name, ast.Name) or self.statement not in body:
            return None
        before = [
            node
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name)
            and node.id == name.id
            and node.lineno < self.statement.lineno
        ]
        made = self.source.parents.get(before[0]) if len(before) == 1 else None
        if not isinstance(made, ast.Assign) or len(made.targets) != 1 or made not in body:
            return None
        call: ast.expr = made.value
        while isinstance(call, ast.Call):
            if self.qualified(call.func).removesuffix("_like") in (f"torch.{f}" for f in FACTORIES):
                return call
            if not isinstance(call.func, ast.Attribute):
                return None
            call = call.func.value
        return None


def site(broken: Broken) -> Site | None:
    """The place of a break; None if its file cannot be read, or it is not in a function."""
    source = user_source(broken.file) if broken.file and not broken.library else None
    function = source.function_at(broken.line) if source is not None else None
    if source is None or function is None:
        return None
    try:
        statement = source.text.statement(broken.line)
    except EditError:
        return None
    wanted = (broken.line, broken.column, broken.line, broken.end_column)
    expression = next(
        (
            node
            for node in ast.walk(function)
            if isinstance(node, ast.expr)
            and (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == wanted
        ),
        None,
    )
    return Site(source, function, statement, expression)


def _bound(node: ast.AST) -> Iterator[str]:
    """All names that a statement binds, also in functions and classes inside it."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            yield one.id
        elif isinstance(one, ast.arg):
            yield one.arg
        elif isinstance(one, FunctionNode | ast.ClassDef) and one is not node:
            yield one.name
        elif isinstance(one, ast.Import | ast.ImportFrom):
            for name in one.names:
                yield (name.asname or name.name).partition(".")[0]
        elif isinstance(one, ast.ExceptHandler) and one.name:
            yield one.name
