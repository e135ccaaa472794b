"""The kinds of edit: each is a function from a text and a line to changes of its statement.

None is known to preserve results: that is measured when an edit is tried."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from tcw.compiler.protocol.edits.edit import Edit, EditError
from tcw.compiler.protocol.edits.source_text import (
    Replacement,
    SourceText,
    Span,
    dotted,
    end_of,
    span_of,
    start_of,
)

RESULT = "_result"
MATH = frozenset({
    "sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "erf", "floor", "ceil",
})  # fmt: skip
"""Functions of `math` that torch has under the same name."""
_MASK, _CAUSAL = 3, 5
"""Positions of `attn_mask` and `is_causal` in `scaled_dot_product_attention(q, k, v, …)`."""


def drop(text: SourceText, line: int) -> list[Replacement]:
    """Remove the statement: a call whose result is unused, or an assertion."""
    statement = text.statement(line, ast.Expr, ast.Assert)
    if not isinstance(statement, ast.Expr | ast.Assert):
        raise EditError("no call statement or assertion is on that line")
    several = statement.end_lineno != statement.lineno
    return [Replacement(span_of(statement), "None" if several else "pass")]


def later(text: SourceText, line: int) -> list[Replacement]:
    """Run the statement last in its function, after the result is computed."""
    statement = text.statement(line, ast.Expr)
    if not isinstance(statement, ast.Expr):
        raise EditError("no call statement is on that line")
    function = text.function_of(statement)
    last = function.body[-1]
    after = function.body[function.body.index(statement) + 1 :]
    returns = [node for one in after for node in ast.walk(one) if isinstance(node, ast.Return)]
    if not isinstance(last, ast.Return) or returns != [last]:
        raise EditError("its function has no single return at its end")
    read = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    bound = {
        node.id
        for one in after
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    if read & bound:
        raise EditError(f"{min(read & bound)} is assigned again after it")
    moved = ast.unparse(statement)
    gone = drop(text, line)
    if last.value is None:
        return [*gone, Replacement(start_of(last), f"{moved}; ")]
    return [
        *gone,
        Replacement(start_of(last, len("return")), f"{RESULT} ="),
        Replacement(end_of(last), f"; {moved}; return {RESULT}"),
    ]


def undisable(text: SourceText, line: int) -> list[Replacement]:
    """Remove `torch.compiler.disable`, as a decorator or around a function."""
    for node in ast.walk(text.tree):
        for one in getattr(node, "decorator_list", ()):
            inner = one.func if isinstance(one, ast.Call) else one
            if _disables(inner) and one.lineno <= line <= one.end_lineno:
                return [_without_decorator(text, one)]
    for call in text.calls(line):
        if _disables(call.func) and len(call.args) == 1:
            return [Replacement(span_of(call), ast.unparse(call.args[0]))]
    raise EditError("no torch.compiler.disable is on that line")


def _disables(node: ast.expr) -> bool:
    return dotted(node).endswith(("compiler.disable", "_dynamo.disable"))


def _without_decorator(text: SourceText, node: ast.expr) -> Replacement:
    if node.end_lineno != node.lineno:
        raise EditError("the decorator spans several lines")
    before = text.lines[node.lineno - 1].encode()[: node.col_offset]
    at = before.rindex(b"@")
    return Replacement(Span(node.lineno, at, node.lineno, node.end_col_offset or at), "", False)


def item(text: SourceText, line: int) -> list[Replacement]:
    """Remove `.item()` and `float(…)`: a tensor stays a tensor."""
    found = []
    for call in text.calls(line):
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr == "item" and not call.args:
            value = function.value
            span, end = span_of(call), end_of(value)
            found.append(
                Replacement(Span(end.line, end.column, span.end_line, span.end_column), "")
            )
        elif dotted(function) == "float" and len(call.args) == 1 and not call.keywords:
            (value,) = call.args
            if isinstance(value, ast.Constant):
                continue
            found += [
                Replacement(Span(*_from_to(start_of(call), start_of(value))), "("),
                Replacement(Span(*_from_to(end_of(value), end_of(call))), ")"),
            ]
    if not found:
        raise EditError("no .item() or float() is on that line")
    if any(replacement.span.line != replacement.span.end_line for replacement in found):
        raise EditError("it spans several lines")
    return found


def _from_to(start: Span, end: Span) -> tuple[int, int, int, int]:
    return start.line, start.column, end.line, end.column


def torch_math(text: SourceText, line: int) -> list[Replacement]:
    """Replace `math.exp(…)` by `torch.exp(…)`."""
    found = []
    for call in text.calls(line):
        name = dotted(call.func)
        if name.startswith("math.") and name.removeprefix("math.") in MATH:
            found.append(Replacement(span_of(call.func), f"torch.{name.removeprefix('math.')}"))
    if not found:
        raise EditError("no math function that torch also has is on that line")
    imported = (
        name.asname or name.name
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Import)
        for name in node.names
    )
    if "torch" not in imported:
        raise EditError("the file does not import torch under its own name")
    return found


def always(text: SourceText, line: int) -> list[Replacement]:
    """Run the body of an `if` unconditionally."""
    statement = text.statement(line, ast.If)
    if not isinstance(statement, ast.If) or statement.orelse:
        raise EditError("no `if` without `else` is on that line")
    return [Replacement(span_of(statement.test), "True")]


def text_of_sizes(text: SourceText, line: int) -> list[Replacement]:
    """Turn printed sizes into strings, which torch can print after the graph."""
    statement = text.statement(line, ast.Expr)
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        raise EditError("no call statement is on that line")
    found = []
    for argument in statement.value.args:
        if is_size(argument):
            source = ast.unparse(argument)
            if '"' in source or "\\" in source:
                raise EditError("it contains quotes or backslashes")
            found.append(Replacement(span_of(argument), f'f"{{{source}}}"'))
    if not found:
        raise EditError("it does not print a size")
    return found


def is_size(argument: ast.expr) -> bool:
    """`x.shape`, `x.size()`, `tuple(x.shape)`, `list(x.size())`: integers, whatever `x`
    contains."""
    if isinstance(argument, ast.Attribute):
        return argument.attr == "shape"
    if not isinstance(argument, ast.Call) or argument.keywords:
        return False
    if isinstance(argument.func, ast.Attribute):
        return argument.func.attr == "size" and not argument.args
    inner = argument.args[0] if len(argument.args) == 1 else None
    made = isinstance(argument.func, ast.Name) and argument.func.id in ("tuple", "list")
    return made and inner is not None and is_size(inner)


def no_mask(text: SourceText, line: int) -> list[Replacement]:
    """Remove attention's mask."""
    return [Replacement(span_of(_mask(_attention(text, line))), "None")]


def causal(text: SourceText, line: int) -> list[Replacement]:
    """Give attention `is_causal=True` instead of a mask."""
    call = _attention(text, line)
    given = next((keyword for keyword in call.keywords if keyword.arg == "is_causal"), None)
    if len(call.args) > _CAUSAL:
        raise EditError("it already has is_causal")
    changes = no_mask(text, line)
    if given is not None:
        return [*changes, Replacement(span_of(given.value), "True")]
    given_here: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    last = max(given_here, key=lambda one: (span_of(one).end_line, span_of(one).end_column))
    if last is _mask(call) or getattr(last, "value", None) is _mask(call):
        return [Replacement(changes[0].span, "None, is_causal=True", is_expression=False)]
    return [*changes, Replacement(end_of(last), ", is_causal=True")]


def _attention(text: SourceText, line: int) -> ast.Call:
    for call in text.calls(line):
        if dotted(call.func).endswith("scaled_dot_product_attention"):
            if any(isinstance(arg, ast.Starred) for arg in call.args):
                raise EditError("its arguments are not written out")
            return call
    raise EditError("no scaled_dot_product_attention is on that line")


def _mask(call: ast.Call) -> ast.expr:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "attn_mask"), None)
    if given is None and len(call.args) > _MASK:
        given = call.args[_MASK]
    if given is None:
        raise EditError("that attention has no mask")
    return given


KINDS: dict[str, Callable[[SourceText, int], list[Replacement]]] = {
    "drop": drop,
    "later": later,
    "undisable": undisable,
    "item": item,
    "torch-math": torch_math,
    "always": always,
    "text": text_of_sizes,
    "no-mask": no_mask,
    "causal": causal,
}
"""By their names on the command line."""
BOM = "\ufeff"


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits applied: the same number of lines, each with its own line ending;
    lines without an edit are unchanged.

    Raises `EditError` if an edit cannot be applied, or if two edits overlap.
    """
    mark = BOM if text.startswith(BOM) else ""
    ended = text.removeprefix(BOM).split("\n")
    whole = "\n".join([*(line.removesuffix("\r") for line in ended[:-1]), ended[-1]])
    if "\r" in whole:
        raise EditError("the file has carriage returns inside lines")
    source = SourceText(whole)
    changes: list[Replacement] = []
    for edit in dict.fromkeys(edits):
        kind = KINDS.get(edit.kind)
        if kind is None:
            raise EditError(f"{edit}: no edit {edit.kind!r}; the kinds are {', '.join(KINDS)}")
        try:
            made = kind(source, edit.line)
        except EditError as error:
            raise EditError(f"{edit}: {error}") from error
        if any(_overlap(replacement, other) for replacement in made for other in changes):
            raise EditError(f"{edit}: another edit changes the same place")
        changes += made
    result = source.changed(changes)
    try:
        SourceText(result)
    except EditError as error:
        raise EditError(f"the result is not valid Python: {error}") from error
    lines = result.split("\n")
    returns = ["\r" if line.endswith("\r") else "" for line in ended]
    return mark + "\n".join(map("".join, zip(lines, returns, strict=True)))


def _overlap(one: Replacement, other: Replacement) -> bool:
    a, b = one.span, other.span
    start = max((a.line, a.column), (b.line, b.column))
    end = min((a.end_line, a.end_column), (b.end_line, b.end_column))
    return start < end or (a.line, a.column) == (b.line, b.column)
