"""What torch's objects say of a guarded value, as far as advice depends on it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from typing import Any

import torch

from tcw.compiler.capture.advice.user_source import user_source
from tcw.compiler.capture.recompile_advice.changed import Facts
from tcw.compiler.graphs.lines import is_users_own

_OPTIMIZER = re.compile(r"^(?P<owner>.+)\.param_groups\[\d+\]\['(?P<name>\w+)'\]")
_ATTRIBUTE = re.compile(r"^(?P<owner>.+?)(?:\.__dict__\['\w+'\]|\.\w+)$")


def facts_of(
    look_up: Callable[[str], Any], source: str, index: int | None, line: ast.stmt | None, root: str
) -> Facts:
    """The facts of the value with this source; none if it cannot be read. `look_up` evaluates a
    source and may raise; `line`: the statement that needs the value; `root`: the folder of the
    user's files."""
    try:
        return _facts(look_up, source, index, line, root)
    except Exception:
        return Facts()


def _facts(
    look_up: Callable[[str], Any], source: str, index: int | None, line: ast.stmt | None, root: str
) -> Facts:
    value = look_up(source)
    if isinstance(value, torch.Tensor):
        of_one = index is not None and index < value.dim() and value.shape[index] == 1
        return Facts(
            parameter=isinstance(value, torch.nn.Parameter),
            contiguous=of_one and value.layout is torch.strided and value.is_contiguous(),
            leaf=value.is_leaf,
            marked=bool(getattr(value, "_dynamo_dynamic_indices", None)),
        )
    optimizer = _OPTIMIZER.match(source)
    if optimizer is not None:
        owner = look_up(optimizer["owner"])
        start = owner.defaults.get(optimizer["name"]) if hasattr(owner, "defaults") else None
        return Facts(
            owner=type(owner).__name__,
            default=repr(start) if type(start) in (int, float) else "",
        )
    chooses = isinstance(value, int) and line is not None and _indexes_list(look_up, source, line)
    attribute = _ATTRIBUTE.match(source)
    if attribute is None and not isinstance(value, torch.nn.Module):
        return Facts(indexes_list=chooses)
    owner = type(value if attribute is None else look_up(attribute["owner"]))
    file = getattr(sys.modules.get(owner.__module__), "__file__", None) or ""
    written = user_source(file) if is_users_own(file, root) else None
    return Facts(owner=owner.__name__, owner_source=written, indexes_list=chooses)


def _indexes_list(look_up: Callable[[str], Any], source: str, line: ast.stmt) -> bool:
    """Whether the line has `items[n]` for this value and a list or tuple of the function's."""
    last = re.split(r"\W+", source.rstrip("']"))[-1]
    for node in ast.walk(line):
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        index = node.slice
        name = index.attr if isinstance(index, ast.Attribute) else getattr(index, "id", "")
        if name == last:
            return isinstance(look_up(f"L[{node.value.id!r}]"), list | tuple)
    return False
