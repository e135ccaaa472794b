"""Where a script calls what it compiles, and how a line that runs before each call is written
there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tcw.compiler.protocol.edits import EditError
from tcw.compiler.protocol.edits.source_text import SourceText, dotted
from tcw.compiler.trace.records import SourceChange


@dataclass(frozen=True)
class CallSite:
    """One call of something that the file compiles."""

    call: ast.Call
    statement: ast.stmt


def call_sites(tree: ast.Module) -> list[CallSite]:
    """The calls of names to which the file gives something compiled."""
    names = _compiled_names(tree)
    sites = []
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or hasattr(statement, "body"):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
                sites.append(CallSite(node, statement))
    return sites


def _compiled_names(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            inner = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
            if any(is_compile(decorator) for decorator in inner):
                names.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if is_compile(node.value.func):
                names.update(map(ast.unparse, node.targets))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr == "compile":
                names.add(ast.unparse(function.value))
    return names


def is_compile(function: ast.expr) -> bool:
    """Whether this is `torch.compile`, or `compile` of a module."""
    if dotted(function) == "torch.compile":
        return True
    method = isinstance(function, ast.Attribute) and function.attr == "compile"
    return method and dotted(function) not in ("re.compile", "regex.compile")


def parameters_at(text: str, line: int) -> list[str]:
    """The names of the parameters of the function that is defined at this line, without `self`."""
    for node in ast.walk(SourceText(text).tree):
        if isinstance(node, ast.FunctionDef):
            first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
            if first <= line <= node.body[0].lineno:
                names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
                return names[1:] if names[:1] == ["self"] else names
    return []


def at_calls(
    lines: Sequence[ast.stmt], text: str, file: str, parameters: Sequence[str]
) -> list[SourceChange]:
    """The changes that do at each call what these lines do before it: `x = x.contiguous()` becomes
    part of the argument, `mark_dynamic(x, 0)` a line above. Raises `EditError` if the file has no
    such call, or writes it in a way that is not understood."""
    source = SourceText(text.replace("\r\n", "\n"))
    sites = call_sites(source.tree)
    if not sites:
        raise EditError("the file has no call of what it compiles")
    changes: list[SourceChange] = []
    for site in sites:
        changes += _at_call(lines, source, file, site, parameters)
    return changes


def _at_call(
    lines: Sequence[ast.stmt],
    source: SourceText,
    file: str,
    site: CallSite,
    parameters: Sequence[str],
) -> list[SourceChange]:
    call, first = site.call, site.statement.lineno
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        raise EditError("its arguments are not written out")
    given = dict(zip(parameters, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    above: list[str] = []
    inserted: list[tuple[ast.expr, str]] = []
    for line in lines:
        names = {node.id for node in ast.walk(line) if isinstance(node, ast.Name)} & given.keys()
        if not names:
            continue
        written = _Written({name: given[name] for name in names})
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            (name,) = (line.targets[0].id,)
            if name not in given:
                raise EditError(f"the call does not pass {name}")
            inserted.append((given[name], ast.unparse(written.visit(_copy(line.value)))))
        elif all(isinstance(given[name], ast.Name | ast.Attribute) for name in names):
            above.append(ast.unparse(written.visit(_copy(line))))
        else:
            raise EditError("its argument has no name")
    text = source.lines[first - 1]
    indent = text[: len(text) - len(text.lstrip())]
    changes = []
    if above:
        new = "\n".join(indent + line for line in above)
        changes.append(SourceChange(file=file, line=first, end_line=first - 1, text=new))
    for argument, new in inserted:
        if argument.lineno != argument.end_lineno:
            raise EditError("its argument spans several lines")
        raw = source.lines[argument.lineno - 1].encode()
        whole = raw[: argument.col_offset] + new.encode() + raw[argument.end_col_offset :]
        changes.append(
            SourceChange(
                file=file, line=argument.lineno, end_line=argument.lineno, text=whole.decode()
            )
        )
    if len({change.line for change in changes if change.end_line >= change.line}) < len(inserted):
        raise EditError("several arguments of one line change")
    return changes


class _Written(ast.NodeTransformer):
    """Replaces parameters by what a call passes for them."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._given.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _copy(node: ast.AST) -> ast.AST:
    return (
        ast.parse(ast.unparse(node)).body[0]
        if isinstance(node, ast.stmt)
        else ast.parse(ast.unparse(node), mode="eval").body
    )
