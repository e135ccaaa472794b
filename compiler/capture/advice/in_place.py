"""Operations that write into a tensor in a way that torch cannot capture: the same as a result."""

from __future__ import annotations

import ast
import re
from typing import Any

from tcw.compiler.capture.advice.broken import Advised, Broken
from tcw.compiler.capture.advice.site import Site, site
from tcw.compiler.trace.records import Advice

_METHOD = re.compile(r"^Tensor\.(?P<name>\w+_) op")
_GIVEN = re.compile(r"'(\w+)':")


def advise(broken: Broken) -> Advised:
    place = site(broken)
    if place is None:
        return ()
    if broken.type == "Failed to mutate tensor data attribute":
        return _data(place)
    if "Tensor.requires_grad" in broken.type:
        return _leaf(place)
    call = place.expression
    if not isinstance(call, ast.Call):
        return ()
    if "`out=`" in broken.type or "out= tensor" in broken.type:
        return _out(broken, place, call)
    method = call.func
    if not isinstance(method, ast.Attribute):
        return ()
    if "Tensor.resize_()" in broken.type:
        return _resized(place, call, method.value)
    if "Tensor.set_()" in broken.type:
        return _stored(place, call, method.value)
    if (named := _METHOD.match(broken.type)) is None or method.attr != named["name"]:
        return ()
    if "keyword" in broken.type:
        return _positional(broken, place, call, method)
    return _functional(place, call, method)


def _functional(place: Site, call: ast.Call, method: ast.Attribute) -> tuple[Advice, ...]:
    """`x.random_(0, 9)` as `x.copy_(torch.ops.aten.random(x, 0, 9))`, from the same seed."""
    from torch import ops

    name = method.attr.removesuffix("_")
    if not hasattr(ops.aten, name) or "torch" not in place.imports:
        return ()
    tensor = ast.unparse(method.value)
    arguments = [tensor, *map(ast.unparse, (*call.args, *call.keywords))]
    made = f"torch.ops.aten.{name}({', '.join(arguments)})"
    if isinstance(method.value, ast.Name):
        made = f"{tensor}.copy_({made})"
    elif not place.qualified(getattr(method.value, "func", method.value)).startswith("torch."):
        return ()
    return place.instead(f"Use the out-of-place form of {method.attr}", (call, made))


def _positional(
    broken: Broken, place: Site, call: ast.Call, method: ast.Attribute
) -> tuple[Advice, ...]:
    """Arguments by name in the order of the operator's schema."""
    given = {one.arg: ast.unparse(one.value) for one in call.keywords if one.arg}
    mapping = [one.value for one in call.keywords if one.arg is None]
    if len(mapping) > 1 or (mapping and not isinstance(mapping[0], ast.Name)):
        return ()
    for name in _GIVEN.findall(broken.context.partition("kwargs=")[2]):
        if name not in given and mapping:
            given[name] = f"{ast.unparse(mapping[0])}[{name!r}]"
    for schema in _schemas(method.attr):
        arguments = schema.arguments[1:]
        if not set(given) <= {one.name for one in arguments}:
            continue
        ordered = [one for one in arguments if not one.kwarg_only]
        last = max((n for n, one in enumerate(ordered) if one.name in given), default=-1)
        texts = list(map(ast.unparse, call.args))
        for one in ordered[len(texts) : last + 1]:
            if one.name not in given and not one.has_default_value():
                break
            texts.append(given.get(one.name, repr(one.default_value)))
        else:
            named = [f"{one.name}={given[one.name]}" for one in arguments if one.kwarg_only
                     and one.name in given]  # fmt: skip
            new = f"{ast.unparse(method)}({', '.join((*texts, *named))})"
            return place.instead("Give the arguments by position", (call, new))
    return ()


def _schemas(name: str) -> list[Any]:
    from torch import ops

    packet = getattr(ops.aten, name, None)
    return [getattr(packet, one)._schema for one in packet.overloads()] if packet else []


def _out(broken: Broken, place: Site, call: ast.Call) -> tuple[Advice, ...]:
    """`torch.add(a, b, out=y)` as `y.copy_(torch.add(a, b))`; as `y = torch.add(a, b)` where
    `out=` gives y another shape."""
    out = next((one.value for one in call.keywords if one.arg == "out"), None)
    if not isinstance(out, ast.Name | ast.Attribute):
        return ()
    keywords = [one for one in call.keywords if one.arg != "out"]
    result = ast.unparse(ast.Call(call.func, call.args, keywords))
    name = ast.unparse(out)
    if "mismatch" not in broken.type.lower():
        return place.instead("Copy the result into it", (call, f"{name}.copy_({result})"))
    if not isinstance(place.statement, ast.Expr) or place.statement.value is not call:
        return ()
    return place.instead(
        "Assign the result: it has another shape",
        (place.statement, f"{name} = {result}"),
        effect="" if place.made_here(out) else f"other names of {name} keep the old tensor",
    )


def _resized(place: Site, call: ast.Call, tensor: ast.expr) -> tuple[Advice, ...]:
    """A tensor without elements that is resized is a new one."""
    made = place.made_here(tensor)
    sizes = made.args if made is not None and not made.keywords else []
    empty = any(isinstance(one, ast.Constant) and one.value == 0 for one in sizes)
    if not empty or call.keywords or not isinstance(place.statement, ast.Expr):
        return ()
    name, size = ast.unparse(tensor), ", ".join(map(ast.unparse, call.args))
    return place.instead(
        "Make it with this size", (place.statement, f"{name} = {name}.new_empty({size})")
    )


def _stored(place: Site, call: ast.Call, tensor: ast.expr) -> tuple[Advice, ...]:
    """`y.set_(x.untyped_storage(), offset, size, stride)`: a view of x without its gradient."""
    if len(call.args) != 4 or call.keywords or not isinstance(place.statement, ast.Expr):
        return ()
    storage, offset, size, stride = call.args
    function = storage.func if isinstance(storage, ast.Call) else None
    if not isinstance(function, ast.Attribute) or function.attr not in (
        "untyped_storage", "storage", "_typed_storage",
    ):  # fmt: skip
        return ()
    if place.made_here(tensor) is None:
        return ()
    view = ", ".join(map(ast.unparse, (size, stride, offset)))
    return place.instead(
        "Make it a view of the tensor whose storage it shares",
        (
            place.statement,
            f"{ast.unparse(tensor)} = {ast.unparse(function.value)}.detach().as_strided({view})",
        ),
    )


def _data(place: Site) -> tuple[Advice, ...]:
    """`y.data = y.data.half()` as `y = y.half()`."""
    statement = place.statement
    if not isinstance(statement, ast.Assign):
        return ()
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return ()
    name = target.value.id
    data = [
        (node, name)
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == f"{name}.data"
    ]
    return place.instead(
        "Assign to the name, not to its data",
        (target, name),
        *data,
        effect=f"gradients flow through the new {name}, and its other names keep the old data",
    )


def _leaf(place: Site) -> tuple[Advice, ...]:
    """`x.requires_grad = True` on an argument: before the call."""
    statement = place.statement
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign) and ast.unparse(statement.value) == "True":
        target = statement.targets[0]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        target = statement.value.func if not statement.value.args else None
    name = target.value if isinstance(target, ast.Attribute) else None
    arguments = [one.arg for one in ast.walk(place.function.args) if isinstance(one, ast.arg)]
    if not isinstance(name, ast.Name) or name.id not in arguments:
        return ()
    if statement not in place.function.body:
        return ()
    return (
        Advice(
            text="Let it require a gradient before the call",
            code=f"{name.id}.requires_grad_()",
            place="call",
            changes=(place.without(statement),),
        ),
    )
