"""A break in a loop, for which torch leaves the whole function to Python: the body of the loop as a
function of its own, which torch compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tcw.compiler.capture.advice.broken import Broken, as_advice
from tcw.compiler.capture.advice.site import Site, site
from tcw.compiler.capture.advice.user_source import FunctionNode, by_changes
from tcw.compiler.trace.records import Advice, SourceChange

_WHY = "which is compiled: a break inside a loop leaves the whole function to Python"
_OWN_SCOPE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
_STAYS = (
    ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Nonlocal,
    ast.Global, ast.Delete, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef,
    ast.ClassDef, ast.NamedExpr, ast.ExceptHandler, ast.Match,
)  # fmt: skip
"""What means something else in a function of its own, or binds names in another way."""
_BINDS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.With)
"""Statements that bind their names whenever they run."""
_FRAME = {"super", "locals", "vars", "eval", "exec", "globals"}


def in_loop(broken: Broken) -> tuple[Advice, ...]:
    """Advice if torch skipped the frame because this break is in a loop."""
    if "graph break in loop" not in broken.then:
        return ()
    place = site(broken)
    changes = _moved(place) if place is not None else ()
    if changes:
        text = f"Move the loop body into a function of its own, {_WHY}"
        return (by_changes(text, changes),)
    return as_advice(f"Move the rest of the loop body into a separate function, {_WHY}")


def _moved(place: Site) -> tuple[SourceChange, ...]:
    loop = next(
        (
            node
            for node in place.source.up(place.statement)
            if isinstance(node, ast.For | ast.While | FunctionNode)
        ),
        None,
    )
    if not isinstance(loop, ast.For | ast.While) or loop.body[0].lineno == loop.lineno:
        return ()
    inside = [node for one in loop.body for node in ast.walk(one)]
    read = {node.id for node in inside if isinstance(node, ast.Name)}
    text = place.dedented(loop.body[0].lineno, loop.body[-1])
    if text is None or read & _FRAME or any(isinstance(node, _STAYS) for node in inside):
        return ()
    names = _names(place, loop)
    if names is None:
        return ()
    given, returned = names
    name = place.new_name(f"{place.function.name.strip('_')}_step")
    call = f"{name}({', '.join(given)})"
    results = ", ".join(returned)
    lines = [f"def {name}({', '.join(given)}):"]
    lines += [f"    {line}" if line else line for line in text.split("\n")]
    lines += [f"    return {results}"] if returned else []
    indent = " " * loop.body[0].col_offset
    return (
        place.source.above(place.first_line, "\n".join((*lines, "", ""))),
        SourceChange(
            file=place.source.file,
            line=loop.body[0].lineno,
            end_line=loop.body[-1].end_lineno or loop.body[-1].lineno,
            text=f"{indent}{results} = {call}" if returned else f"{indent}{call}",
        ),
    )


def _names(place: Site, loop: ast.For | ast.While) -> tuple[list[str], list[str]] | None:
    """What the body takes and what it gives back; None if that is not known."""
    stored = {node.id for node in _stores(loop.body)}
    around = [loop, *place.source.up(loop)]
    inner = around[: around.index(place.function)]
    if any(isinstance(node, ast.Try) for node in inner) or _closed_over(place.function, stored):
        return None
    certain, perhaps = set[str](), set[str]()
    for name in _stores(place.function.body):
        statement = next(one for one in place.source.up(name) if isinstance(one, ast.stmt))
        if name.lineno < loop.lineno or statement is loop:
            always = isinstance(statement, _BINDS) or statement is loop
            beside = place.source.parents[statement] in around
            (certain if always and beside else perhaps).add(name.id)
    for node in around[around.index(place.function) :]:
        if isinstance(node, FunctionNode):
            certain |= {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
            if node is not place.function:
                certain |= {one.id for one in _stores(node.body)}
    needed = _loads(loop.body) | stored
    if needed & (perhaps - certain):
        return None
    if any(not _made_first(name, loop.body) for name in stored - certain):
        return None
    last = loop.end_lineno or loop.lineno
    after = {
        node.id
        for node in ast.walk(place.function)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and not loop.lineno <= node.lineno <= last
    }
    return sorted(needed & certain), sorted(stored & (certain | after))


def _closed_over(function: FunctionNode, names: set[str]) -> bool:
    """Whether a function inside this one has one of the names."""
    return any(
        isinstance(inner, ast.Name) and inner.id in names
        for node in ast.walk(function)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        and node is not function
        for inner in ast.walk(node)
    )


def _loads(statements: Sequence[ast.stmt]) -> set[str]:
    return {
        node.id
        for one in statements
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def _stores(statements: Sequence[ast.AST]) -> Iterator[ast.Name]:
    """The names that statements bind in their function."""
    for one in statements:
        if isinstance(one, _OWN_SCOPE):
            continue
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            yield one
        yield from _stores(list(ast.iter_child_nodes(one)))


def _made_first(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether each iteration binds the name before it reads it."""
    first = next(
        one
        for one in body
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(one))
    )
    return isinstance(first, ast.Assign) and name not in _loads([first])
