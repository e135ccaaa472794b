"""The lines that a fix runs before each call, on the arguments by name.

    x = x.contiguous()
    torch._dynamo.mark_dynamic(x, 0)

A trace names such lines, and a trace may come from anyone: a line is an assignment to an argument
or a call, made of arguments, constants, and the functions and methods named here.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Any

import torch

from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.runs import PreparedRun
from tcw.compiler.protocol.edits.source_text import dotted
from tcw.workbench.worker.inputs import named_arguments

_NODES = (
    ast.Expr, ast.Assign, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Call,
    ast.keyword, ast.UnaryOp, ast.USub, ast.Tuple, ast.Slice, ast.Load, ast.Store,
)  # fmt: skip
_MARKS = ("mark_dynamic", "maybe_mark_dynamic", "mark_unbacked", "mark_static")
FUNCTIONS = frozenset((
    "torch.tensor", *(f"torch._dynamo.{name}" for name in _MARKS),
    "torch._dynamo.decorators.mark_unbacked", "int", "float",
))  # fmt: skip
METHODS = frozenset((
    "clone", "contiguous", "detach", "expand", "flatten", "item", "requires_grad_", "reshape",
    "squeeze", "to", "unsqueeze",
))  # fmt: skip
CONSTANTS = frozenset(
    f"torch.{name}"
    for name, value in vars(torch).items()
    if isinstance(value, torch.dtype | torch.memory_format)
)


def run_before_call(
    lines: Sequence[str], signature: inspect.Signature | None, run: PreparedRun
) -> dict[str, Any]:
    """Run the lines, and give the run the arguments that they assign. Returns the arguments by
    name. Raises `UserError` for a line of another form, and whatever a line raises."""
    named = named_arguments(signature, run.positional, run.keyword)
    before = dict(named)
    for line in lines:
        exec(compile(_checked(line, named), "<before call>", "exec"), {"torch": torch}, named)
    run.passed = run.positional, run.keyword
    names = list(named_arguments(signature, run.positional, {}))
    run.positional = tuple(named[name] for name in names)
    run.keyword = {name: named[name] for name in run.keyword}
    return {name: named[name] for name in before}


def _checked(line: str, named: dict[str, Any]) -> ast.Module:
    try:
        tree = ast.parse(line.strip())
    except SyntaxError as error:
        raise _bad(line, str(error)) from error
    known: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module) or node in known:
            continue
        if not isinstance(node, _NODES):
            raise _bad(line, f"{type(node).__name__} is not allowed")
        if isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
            if not method and dotted(node.func) not in FUNCTIONS:
                raise _bad(line, f"{ast.unparse(node.func)} is not one of the known functions")
            known.update(() if method else ast.walk(node.func))
        elif isinstance(node, ast.Attribute) and dotted(node) in CONSTANTS:
            known.update(ast.walk(node))
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            raise _bad(line, f"{node.attr} is not allowed")
        elif isinstance(node, ast.Name) and node.id not in named:
            raise _bad(line, f"no argument {node.id!r}")
    return tree


def _bad(line: str, why: str) -> UserError:
    return UserError(f"before each call: {line!r}: {why}", type="BadLine", doing="preparing a call")
