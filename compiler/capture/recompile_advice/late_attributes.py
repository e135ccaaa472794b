"""Attributes of a module that its first call sets: `if self.act is None: self.act = …`."""

from __future__ import annotations

import ast

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.advice.user_source import FunctionNode, UserSource, by_changes
from tcw.compiler.capture.recompile_advice.changed import (
    ChangedValue,
    Settings,
    attribute_of,
)


def was_none(changed: ChangedValue) -> Advised:
    name = attribute_of(changed.source)
    text = f"Set {changed.name} before the first compiled call: it is None there, and a call then "
    text += "compiles again for what it is later"
    source, start = initialised(changed, name)
    late = _computed_late(changed, name)
    if source is None or start is None or late is None:
        return text
    changes = source.replaced((start.value, ast.unparse(late.value)))
    return by_changes(f"{text}; here, in __init__", changes) if changes else text


def absent(changed: ChangedValue, settings: Settings) -> Advised:
    text = f"Set the attribute before the first call, in __init__ say: the code asks {changed.name}"
    text += ", and each case is compiled separately"
    name = _asked(changed.name)
    source, function = _initialiser(changed)
    late = _computed_late(changed, name)
    if source is None or function is None or late is None:
        return text
    return by_changes(text, (source.below(function.body[-1], ast.unparse(late)),))


def _asked(condition: str) -> str:
    """`scale` of `hasattr(self, 'scale')`."""
    try:
        call = ast.parse(condition, mode="eval").body
    except SyntaxError:
        return ""
    last = call.args[-1] if isinstance(call, ast.Call) and call.args else None
    return last.value if isinstance(last, ast.Constant) and isinstance(last.value, str) else ""


def initialised(
    changed: ChangedValue, attribute: str
) -> tuple[UserSource | None, ast.Assign | None]:
    """Where `__init__` of the module's class sets the attribute."""
    source, function = _initialiser(changed)
    return source, _set_in(function, attribute)


def _initialiser(changed: ChangedValue) -> tuple[UserSource | None, FunctionNode | None]:
    source = changed.facts.owner_source
    owner = source.class_named(changed.facts.owner) if source is not None else None
    if source is None or owner is None:
        return None, None
    return source, source.method(owner, "__init__")


def _set_in(function: FunctionNode | None, attribute: str) -> ast.Assign | None:
    """The only statement of a function that sets `self.attribute`."""
    found = [
        node
        for node in (ast.walk(function) if function is not None and attribute else ())
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and ast.unparse(node.targets[0]) == f"self.{attribute}"
    ]
    return found[0] if len(found) == 1 else None


def _computed_late(changed: ChangedValue, attribute: str) -> ast.Assign | None:
    """The statement of the function that sets the attribute, if `__init__` can compute it: it reads
    no variable of the function."""
    function = changed.function
    late = _set_in(function, attribute)
    if function is None or late is None:
        return None
    own = {
        one.arg if isinstance(one, ast.arg) else one.id
        for one in ast.walk(function)
        if isinstance(one, (ast.arg, ast.Name))
        and not isinstance(getattr(one, "ctx", None), ast.Load)
    } - {"self"}
    read = {one.id for one in ast.walk(late.value) if isinstance(one, ast.Name)}
    return None if read & own else late
