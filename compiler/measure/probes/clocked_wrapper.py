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
    """A statement that is a call, or binds what a call answers."""

    called: str
    """What it calls, as it stands there: `aten_mm`, `torch.ops.aten.mm.default`."""
    text: str
    reads: tuple[str, ...]
    """Names of its arguments that are locals, each once."""
    makes: tuple[str, ...]
    """Names that it binds."""


Around = Callable[[Statement], tuple[str, str] | None]
"""Statements to put before and after one; None leaves it alone."""


def statements(code: str) -> list[Statement]:
    """Those of a function's own body, in order."""
    found: list[Statement] = []
    surrounded(code, found.append)
    return found


def surrounded(code: str, around: Around, with_next: Collection[str] = ()) -> str:
    """The text of the one function in `code`, with what `around` says around its statements.

    A statement that follows and calls one of `with_next` on what was made belongs to it.
    """
    module = ast.parse(code)
    function = next(one for one in module.body if isinstance(one, ast.FunctionDef))
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    taken = {name.id for name in names}
    local = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    body: list[ast.stmt] = []
    rest = function.body[::-1]
    while rest:
        statement = rest.pop()
        call = _call(statement)
        about = _about(statement, call, local) if call is not None else None
        said = around(about) if about is not None else None
        if about is None or said is None:
            body.append(statement)
            continue
        assert call is not None
        hoisted = _Hoisted(taken)
        hoisted.out_of(call)
        inner = [statement]
        while rest and _follows(rest[-1], about.makes, with_next):
            inner.append(rest.pop())
        before, after = said
        body += [*hoisted.statements, *ast.parse(before).body, *inner, *ast.parse(after).body]
        if hoisted.names:
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
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    names = [node.id for one in arguments for node in ast.walk(one) if isinstance(node, ast.Name)]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    made = [node.id for one in targets for node in ast.walk(one) if isinstance(node, ast.Name)]
    return Statement(
        ast.unparse(call.func),
        ast.unparse(statement),
        tuple(dict.fromkeys(name for name in names if name in local)),
        tuple(name for name in made if name != "_"),
    )


def _follows(statement: ast.stmt, made: Collection[str], functions: Collection[str]) -> bool:
    if isinstance(statement, ast.Delete):
        return [ast.unparse(one) for one in statement.targets] == ["_"]  # answers nobody reads
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
