"""What reaches a frame through `*args` and `**kwargs`, by the names that its caller uses.

Dynamo compiles a wrapper such as `def wrapper(self, *args, **kwargs)` as the frame, but its caller
passes `input_ids`, a name from the signature of the wrapped function.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tcw.compiler.capture.advice.broken import only_statement
from tcw.compiler.capture.code_objects import original_code, resumes_at
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import Location

DYNAMO = os.path.join("torch", "_dynamo", "")


@dataclass(frozen=True)
class Caller:
    """How a frame's caller names what it passes; the frame itself if nothing better is known."""

    code: CodeType | None = None
    """The function whose signature the caller sees. For a wrapper, the wrapped function."""
    keywords: str = ""
    """Name of the frame's `**kwargs`; "" if it has none."""
    positional: str = ""
    """Name of the frame's `*args`; "" if it has none."""
    names: tuple[str, ...] = ()
    """Names of the items of `*args`; "" for an item whose name is unknown."""
    made: frozenset[str] = frozenset()
    """Locals that are no arguments of the model, as far as known: what it computed before this
    frame, behind a graph break or in a function that runs in Python."""

    @property
    def function(self) -> str:
        return user_name(self.code.co_name) if self.code is not None else ""

    def named(self, text: str) -> str:
        """`kwargs['input_ids'].size(0)` -> `input_ids.size(0)`, in a name or condition."""
        if self.keywords and self.keywords in text:
            key = re.escape(self.keywords)
            text = re.sub(rf"(?<![\w.\]]){key}\['([A-Za-z_]\w*)'\]", r"\1", text)
        if self.positional and self.positional in text:
            key = re.escape(self.positional)
            text = re.sub(rf"(?<![\w.\]]){key}\[(\d+)\]", self._item, text)
        return text

    def _item(self, match: re.Match[str]) -> str:
        index = int(match[1])
        return (self.names[index] if index < len(self.names) else "") or match[0]

    def parameter(self, name: str) -> Location | None:
        """Where the signature declares `name`; None if it does not or cannot be read."""
        return _parameters(self.code).get(name) if self.code is not None else None


def caller_of(
    code: CodeType, f_locals: Mapping[str, Any], arguments: Mapping[str, object] | None = None
) -> Caller:
    """The caller of a frame with these locals. `arguments`: the model's current arguments, by name.

    An item of `*args` gets a name if it is the same object as one of these arguments, or if the
    frame is a `functools.wraps` wrapper of its `self`'s forward, or Dynamo's own wrapper of a
    callable that it would skip: then the signature names it.
    """
    if resumes_at(code) is not None:
        passed = {id(argument) for argument in (arguments or {}).values()}
        made = frozenset(name for name, value in f_locals.items() if id(value) not in passed)
        return Caller(original_code(code), made=made)
    named = code.co_argcount + code.co_kwonlyargcount
    rest = list(code.co_varnames[named:])
    positional = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    keywords = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else ""
    wrapped, bound = _wrapped_forward(code, f_locals), code.co_argcount
    if wrapped is None:
        wrapped, bound = _inside_torchs_wrapper(code, f_locals)
    names: tuple[str, ...] = ()
    if positional:
        items = f_locals.get(positional)
        if isinstance(items, tuple):
            given = _positional(wrapped)[bound:] if wrapped is not None else []
            names = tuple(_name_of(item, arguments or {}) for item in items)
            names = tuple(
                name or (given[index] if index < len(given) else "")
                for index, name in enumerate(names)
            )
    made = _computed(f_locals, arguments or {})
    return Caller(wrapped or code, keywords, positional, names, made)


def _computed(f_locals: Mapping[str, Any], arguments: Mapping[str, object]) -> frozenset[str]:
    """The locals that are tensors of none of the model's arguments; none if these are not known.
    What an object among them holds is not known, so that any tensor may be from there."""
    leaves = pytree.tree_leaves(dict(arguments))
    plain = (torch.Tensor, bool, int, float, complex, str, bytes, torch.dtype, torch.device)
    if not leaves or not all(leaf is None or isinstance(leaf, plain) for leaf in leaves):
        return frozenset()
    passed = {id(leaf) for leaf in leaves}
    return frozenset(
        name
        for name, value in f_locals.items()
        if type(value) is torch.Tensor and id(value) not in passed
    )


def _wrapped_forward(code: CodeType, f_locals: Mapping[str, Any]) -> CodeType | None:
    """The code of the forward of the frame's `self`, if this frame is its wrapper. Of a frame that
    takes only `*args`, `self` is their first."""
    owner = f_locals.get("self")
    if owner is None and code.co_flags & inspect.CO_VARARGS and not code.co_argcount:
        items = f_locals.get(code.co_varnames[code.co_kwonlyargcount])
        owner = items[0] if isinstance(items, tuple) and items else None
    function = inspect.getattr_static(type(owner), "forward", None) if owner is not None else None
    seen = 0
    inside = False
    while isinstance(function, FunctionType) and seen < 32:
        inside = inside or function.__code__ is code
        further = vars(function).get("__wrapped__")
        if not isinstance(further, FunctionType):
            return function.__code__ if inside else None
        function, seen = further, seen + 1
    return None


def _inside_torchs_wrapper(
    code: CodeType, f_locals: Mapping[str, Any]
) -> tuple[CodeType | None, int]:
    """The code that a wrapper in Dynamo's own files calls, as it makes one around a module of
    torch's, and how many of its parameters are bound there."""
    if DYNAMO not in code.co_filename:
        return None, 0
    for name in code.co_freevars:
        inner = f_locals.get(name)
        if isinstance(inner, FunctionType):
            return inner.__code__, 0
        forward = inspect.getattr_static(type(inner), "forward", None)
        if isinstance(forward, FunctionType):
            return forward.__code__, 1
    return None, 0


def _positional(code: CodeType) -> list[str]:
    return list(code.co_varnames[: code.co_argcount])


def _name_of(value: object, arguments: Mapping[str, object]) -> str:
    """The one argument that is this very object; "" if there is none or several."""
    items = [name for name, argument in arguments.items() if argument is value]
    return items[0] if len(items) == 1 and items[0].isidentifier() else ""


@functools.lru_cache(maxsize=256)
def _parameters(code: CodeType) -> dict[str, Location]:
    """The parameters of a function with their positions in its source; empty if unavailable."""
    lines = linecache.getlines(code.co_filename)
    node = _definition(lines, code.co_firstlineno, code.co_name)
    if node is None:
        return {}
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    indent = len(lines[code.co_firstlineno - 1]) - len(lines[code.co_firstlineno - 1].lstrip())
    found = {}
    for argument in arguments:
        line = code.co_firstlineno + argument.lineno - 1
        column = argument.col_offset + indent
        found[argument.arg] = Location(
            file=code.co_filename,
            line=line,
            end_line=line,
            column=column,
            end_column=column + len(argument.arg.encode()),
            function=user_name(code.co_name),
        )
    return found


def _definition(lines: list[str], first: int, name: str) -> ast.FunctionDef | None:
    """The `def` that starts on line `first`, decorators included. Its body is not parsed."""
    if not 0 < first <= len(lines):
        return None
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    block = []
    for line in lines[first - 1 : first + 200]:
        block.append(line[indent:] if not line[:indent].strip() else line)
        if ":" not in line:
            continue
        for body in ("", " " * 200 + "pass\n"):
            node = only_statement("".join(block) + body)
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
    return None
