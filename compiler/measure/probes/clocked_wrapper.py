"""A graph's Python with something done before and after each call that it makes into ATen.

The calls themselves stay as they are. What is computed for their arguments (views) comes before the
clock starts, and lives as long as it did.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a wrapper that calls an operation or a segment."""

    called: str
    """The name that it calls: of an operation or a segment."""
    text: str
    reads: tuple[str, ...]
    """Names of its arguments that are locals, each once."""
    makes: tuple[str, ...]
    """Names that it binds."""


Around = Callable[[Statement], tuple[str, str]]
"""Statements to put before and after one."""


def statements(wrapper: str, called: Collection[str]) -> list[Statement]:
    """Those that call one of these names, in order."""
    found: list[Statement] = []

    def take(statement: Statement) -> tuple[str, str]:
        found.append(statement)
        return "", ""

    _rewritten(wrapper, called, take, ())
    return found


def surrounded(
    wrapper: str, called: Collection[str], around: Around, with_next: Collection[str] = ()
) -> str:
    """The wrapper's text, with what `around` says around each statement that calls one of these
    names. A statement that follows and calls one of `with_next` on what was made belongs to it."""
    return _rewritten(wrapper, called, around, with_next)


def _rewritten(
    wrapper: str, called: Collection[str], around: Around, with_next: Collection[str]
) -> str:
    module = ast.parse(wrapper)
    function = next(one for one in module.body if isinstance(one, ast.FunctionDef))
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    local = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    body: list[ast.stmt] = []
    statements = list(function.body)
    while statements:
        statement = statements.pop(0)
        call = _call(statement)
        if call is None or not isinstance(call.func, ast.Name) or call.func.id not in called:
            body.append(statement)
            continue
        about = _about(statement, call, local)
        hoisted = _Hoisted(names)
        hoisted.out_of(call)
        inner = [statement]
        while statements and _follows(statements[0], about.makes, with_next):
            inner.append(statements.pop(0))
        before, after = around(about)
        body += hoisted.statements
        body += [*ast.parse(before).body, *inner, *ast.parse(after).body]
        if hoisted.statements:
            body += ast.parse(f"del {', '.join(hoisted.names)}").body
    function.body = body
    return ast.unparse(ast.fix_missing_locations(module)) + "\n"


def _call(statement: ast.stmt) -> ast.Call | None:
    """The call that a statement is, or binds the answer of, or an item of it."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    if isinstance(value, ast.Subscript):
        value = value.value
    return value if isinstance(value, ast.Call) else None


def _about(statement: ast.stmt, call: ast.Call, local: Collection[str]) -> Statement:
    assert isinstance(call.func, ast.Name)
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    names = [node.id for one in arguments for node in ast.walk(one) if isinstance(node, ast.Name)]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    made = [node.id for one in targets for node in ast.walk(one) if isinstance(node, ast.Name)]
    return Statement(
        call.func.id,
        ast.unparse(statement),
        tuple(dict.fromkeys(name for name in names if name in local)),
        tuple(name for name in made if name != "_"),
    )


def _follows(statement: ast.stmt, made: Collection[str], functions: Collection[str]) -> bool:
    call = _call(statement)
    return (
        call is not None
        and isinstance(call.func, ast.Name)
        and call.func.id in functions
        and bool(call.args)
        and isinstance(call.args[0], ast.Name)
        and call.args[0].id in made
    )


class _Hoisted(ast.NodeTransformer):
    """Calls in the arguments of a call, made before it."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.statements: list[ast.stmt] = []
        self.names: list[str] = []

    def out_of(self, call: ast.Call) -> None:
        call.args = [self.visit(one) for one in call.args]
        for keyword in call.keywords:
            keyword.value = self.visit(keyword.value)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = f"_{len(self.names)}"
        while name in self.taken:
            name += "_"
        self.names.append(name)
        self.statements.append(ast.Assign([ast.Name(name, ast.Store())], node))
        return ast.Name(name, ast.Load())
