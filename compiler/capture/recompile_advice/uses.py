"""What the user's function does with a size or a number, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from tcw.compiler.capture.recompile_advice.changed import ChangedValue

DECIDES = (ast.If, ast.While, ast.IfExp, ast.Assert)


def loops_on(changed: ChangedValue) -> ast.AST | None:
    """What runs a loop as often as the value says, which is unrolled: a `range`, or the tensor."""
    tensor = _value_of(changed.subject) if changed.index == 0 else None
    for node in _nodes(changed):
        if _is_range(node) and any(_has(item, changed) for item in node.args):
            return node
        over = node.iter if isinstance(node, (ast.For, ast.comprehension)) else None
        items = over.args if isinstance(over, ast.Call) and _name(over) in _ITERATES else [over]
        if tensor is not None and any(item is not None and _same(item, tensor) for item in items):
            return node
    return None


def has_range(statement: ast.stmt) -> bool:
    return any(map(_is_range, ast.walk(statement)))


_ITERATES = ("enumerate", "zip", "reversed")


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _is_range(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and _name(node) == "range"


def equals_on(changed: ChangedValue) -> ast.Compare | None:
    """A comparison of the value with one number that holds for a value that was seen."""
    for node in _nodes(changed):
        if not isinstance(node, ast.Compare) or not _has(node, changed):
            continue
        if not any(isinstance(one, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for one in node.ops):
            continue
        constants = {
            str(one.value)
            for part in (node.left, *node.comparators)
            for one in ast.walk(part)
            if isinstance(one, ast.Constant)
        }
        if constants & {changed.expected, changed.seen}:
            return node
    return None


def decides_on(changed: ChangedValue) -> bool:
    """Whether the line that needs the value is a condition on it, or loops so often."""
    statement = changed.statement
    if statement is None:
        return False
    wanted = _value_of(changed.name)
    for node in ast.walk(statement):
        condition = getattr(node, "test", None) if isinstance(node, DECIDES) else None
        if condition is not None and _contains(condition, wanted):
            return True
        if _is_range(node) and any(_contains(one, wanted) for one in node.args):
            return True
    return False


_GROW = ("append", "extend", "insert")


def grows(changed: ChangedValue) -> ast.Call | None:
    """The call that makes the list longer each time: `past.append(x)`."""
    wanted = _value_of(changed.subject)
    for call in _nodes(changed):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr in _GROW and wanted is not None and _same(call.func.value, wanted):
            return call
    return None


def joined_along(changed: ChangedValue) -> str | None:
    """Along which dimension the function concatenates the list, if that, and making it longer, is
    all it does with it."""
    dimensions = set()
    reads = 0
    for node in _nodes(changed):
        if isinstance(node, ast.Name) and node.id == changed.subject:
            reads += 1
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if ast.unparse(node.func) == "torch.cat" and ast.unparse(node.args[0]) == changed.subject:
            given = {one.arg: one.value for one in node.keywords}
            dimension = node.args[1] if len(node.args) > 1 else given.get("dim")
            dimensions.add("0" if dimension is None else ast.unparse(dimension))
            reads -= 1
    return dimensions.pop() if len(dimensions) == 1 and reads == 1 else None


def loops_over(changed: ChangedValue) -> bool:
    """Whether the function has a loop over the list."""
    wanted = _value_of(changed.subject)
    loops = (ast.For, ast.comprehension)
    return any(isinstance(node, loops) and _contains(node.iter, wanted) for node in _nodes(changed))


def _nodes(changed: ChangedValue) -> Iterator[ast.AST]:
    if changed.function is not None:
        yield from ast.walk(changed.function)
    elif changed.statement is not None:
        yield from ast.walk(changed.statement)


def _has(node: ast.AST, changed: ChangedValue) -> bool:
    """Whether an expression reads the value: the number, or the size of the tensor."""
    if changed.index is None:
        return _contains(node, _value_of(changed.name))
    tensor = _value_of(changed.subject)
    names = _names_of_size(changed)
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in names:
            return True
        if tensor is not None and _is_size(part, tensor, changed.index):
            return True
    return False


def _names_of_size(changed: ChangedValue) -> set[str]:
    """Variables of the function that hold the size: `n = x.shape[0]`, `b, n, _ = x.shape`."""
    tensor, index = _value_of(changed.subject), changed.index
    names: set[str] = set()
    for node in _nodes(changed):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or tensor is None:
            continue
        (target,) = node.targets
        if isinstance(target, ast.Name) and index is not None:
            if _is_size(node.value, tensor, index):
                names.add(target.id)
        elif isinstance(target, ast.Tuple) and _is_shape(node.value, tensor):
            items = target.elts
            if index is not None and index < len(items):
                item = items[index]
                if isinstance(item, ast.Name):
                    names.add(item.id)
    return names


def _is_shape(node: ast.AST, tensor: ast.expr) -> bool:
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
        return isinstance(node, ast.Attribute) and node.attr == "size" and _same(node.value, tensor)
    return isinstance(node, ast.Attribute) and node.attr == "shape" and _same(node.value, tensor)


def _is_size(node: ast.AST, tensor: ast.expr, index: int) -> bool:
    if isinstance(node, ast.Subscript) and _is_shape(node.value, tensor):
        return _number(node.slice) in (index, None) or (_number(node.slice) or 0) < 0
    if isinstance(node, ast.Call) and len(node.args) == 1:
        (argument,) = node.args
        if isinstance(node.func, ast.Name) and node.func.id == "len":
            return index == 0 and _same(argument, tensor)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
            return _same(node.func.value, tensor) and _number(argument) in (index, None)
    return False


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, int) else None


def _value_of(name: str) -> ast.expr | None:
    """The name as an expression."""
    try:
        return ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _contains(node: ast.AST, wanted: ast.expr | None) -> bool:
    return wanted is not None and any(_same(part, wanted) for part in ast.walk(node))


def _same(node: ast.AST, wanted: ast.expr) -> bool:
    return isinstance(node, ast.expr) and ast.unparse(node) == ast.unparse(wanted)
