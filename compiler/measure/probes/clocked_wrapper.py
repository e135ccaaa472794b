"""A graph's Python with statements before and after each of its calls into ATen.

The calls themselves are unchanged. Calls in their arguments (views) run before the clock starts,
and their results live as long as before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that is a call, or binds the result of a call."""

    called: str
    """The called function, as written: `aten_mm`, `torch.ops.aten.mm.default`."""
    text: str
    reads: tuple[str, ...]
    """Names of its arguments that are locals, each once."""
    makes: tuple[str, ...]
    """Names that it binds."""


Around = Callable[[Statement], tuple[str, str] | None]
"""Returns the statements to put before and after a statement, or None to leave it alone."""


def statements(code: str) -> list[Statement]:
    """The call statements of a function's own body, in order."""
    found: list[Statement] = []
    surrounded(code, found.append)
    return found


def surrounded(code: str, around: Around, with_next: Collection[str] = ()) -> str:
    """The text of the one function in `code`, with the statements of `around` inserted.

    A following statement that calls one of `with_next` on the bound names, on a condition or not,
    belongs to its predecessor.
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
    """The call that a statement consists of, or whose result, or an item of it, it binds."""
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
        return [ast.unparse(one) for one in statement.targets] == ["_"]  # unused results
    if isinstance(statement, ast.If):
        return all(_follows(one, made, functions) for one in statement.body)
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
    """Moves calls in the arguments of a call in front of it."""

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
