"""What gives the same value in every call: it is evaluated once, above the function."""

from __future__ import annotations

import ast
import sys

from tcw.compiler.capture.advice.broken import Advised, Broken
from tcw.compiler.capture.advice.site import Site, site
from tcw.compiler.capture.advice.user_source import by_changes
from tcw.compiler.trace.records import Advice

_SAME_MODULES = (sys.stdlib_module_names | {"numpy"}) - {
    "asyncio", "builtins", "ctypes", "datetime", "gc", "io", "itertools", "logging",
    "multiprocessing", "queue", "random", "secrets", "shutil", "signal", "socket", "subprocess",
    "tempfile", "threading", "time", "uuid", "warnings",
}  # fmt: skip
"""Without those whose functions give another value in each call, keep a state or change one."""
_SAME = frozenset({
    "abs", "bool", "bytes", "complex", "divmod", "float", "frozenset", "hex", "int", "len", "max",
    "min", "oct", "ord", "chr", "pow", "repr", "round", "sorted", "str", "sum", "tuple",
})  # fmt: skip
"""Builtin functions whose result depends on their arguments alone, and is not changed."""
_OWN_SCOPE = (ast.Lambda, ast.comprehension, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def advise(broken: Broken) -> Advised:
    place = site(broken)
    if place is None:
        return ()
    if isinstance(place.statement, ast.ClassDef):
        return _class(place, place.statement)
    if place.expression is None or isinstance(place.statement, ast.Expr):
        return ()
    wanted: ast.expr | None = None
    for node in (place.expression, *place.source.up(place.expression)):
        if not isinstance(node, ast.expr) or not _same_value(place, node):
            break
        wanted = node
    calls = [one for one in ast.walk(wanted) if isinstance(one, ast.Call)] if wanted else []
    if wanted is None or not calls:
        return ()
    function = ast.unparse(calls[-1].func)
    wish = function.rpartition(".")[2]
    if isinstance(place.statement, ast.Assign) and place.statement.value is wanted:
        target = place.statement.targets[0]
        wish = target.id if isinstance(target, ast.Name) else wish
    name = place.new_name(wish.upper())
    changes = place.source.replaced((wanted, name))
    if not changes:
        return ()
    above = place.source.above(place.first_line, f"{name} = {ast.unparse(wanted)}")
    return by_changes(
        f"If {function} gives the same value in every call, call it once, above the function",
        (above, *changes),
        effect=f"all calls share one value of {function}, made when the file is loaded",
    )


def _same_value(place: Site, node: ast.expr) -> bool:
    """Whether its value depends on constants and on functions whose value stays the same."""
    if isinstance(node, ast.Starred) or not place.reads_only_fixed(node):
        return False
    for part in ast.walk(node):
        if isinstance(part, _OWN_SCOPE):
            return False
        if isinstance(part, ast.Call) and not _is_same(place, part.func):
            return False
        if isinstance(part, ast.Name) and place.imports.get(part.id, "").startswith("torch"):
            return False  # its own calls are in the graph
    return True


def _is_same(place: Site, function: ast.expr) -> bool:
    base: ast.AST = function
    while isinstance(base, ast.Attribute | ast.Call | ast.Subscript):
        base = base.func if isinstance(base, ast.Call) else base.value
    if isinstance(base, ast.Name):
        name = place.qualified(function) or place.imports.get(base.id, "")
        if name.startswith("numpy.random"):
            return False
        return name.partition(".")[0] in _SAME_MODULES if name else base.id in _SAME
    return isinstance(base, ast.Constant)


def _class(place: Site, made: ast.ClassDef) -> tuple[Advice, ...]:
    """A class that uses nothing of the function around it."""
    own = {node.name for node in ast.walk(made) if hasattr(node, "name")}
    own |= {node.arg for node in ast.walk(made) if isinstance(node, ast.arg)}
    own |= {
        node.id
        for node in ast.walk(made)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    outside = made.name in place.fixed or made.decorator_list
    if (
        outside
        or not place.reads_only_fixed(made, own)
        or any(isinstance(node, ast.Nonlocal | ast.Global) for node in ast.walk(made))
    ):
        return ()
    lines = place.dedented(made.lineno, made)
    if lines is None:
        return ()
    above = place.source.above(place.first_line, f"{lines}\n\n")
    return (
        by_changes(
            f"Define class {made.name} once, above the function",
            (above, place.without(made)),
            effect=f"all calls share one class {made.name}",
        ),
    )
