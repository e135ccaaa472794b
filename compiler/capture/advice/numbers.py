"""Tensors that become Python numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from tcw.compiler.capture.advice import branches
from tcw.compiler.capture.advice.broken import Advised, Broken, calls
from tcw.compiler.capture.advice.site import site
from tcw.compiler.capture.advice.sizes import DYNAMIC_SHAPE, NUMBER
from tcw.compiler.protocol.edits.kinds import MATH
from tcw.compiler.trace.records import Advice

ITEM = "Unsupported Tensor.item() call"
TOLIST = "Tensor.tolist()"

_SCALARS = Advice(
    text="Or let torch capture the number as a symbol",
    code="torch._dynamo.config.capture_scalar_outputs = True",
)
_SIZE = Advice(
    text="Let torch capture the number as a symbol: sizes and indices have to be numbers",
    code=_SCALARS.code,
)
_LIST = (
    Advice(
        text="Let torch capture the numbers as symbols: sizes have to be numbers",
        code=_SCALARS.code,
    ),
    Advice(
        text="Or keep it a tensor: index it, or unbind() it; tolist() copies every element to the "
        "host"
    ),
)
_CONVERSION = re.compile(r"(?P<function>float|int|bool)\((?P<tensor>.+)\)$", re.DOTALL)
_NO_GRADIENT = "Or keep it a tensor that, as the number, carries no gradient"
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
COPIES = (".item()", ".tolist()")
"""What turns a tensor into Python numbers."""


def advise(broken: Broken) -> Advised:
    function = broken.expression.partition("(")[0]
    if function.startswith("math.") and function.removeprefix("math.") in MATH:
        return _torch_math(broken, function)
    if broken.type.startswith(ITEM):
        return _number(broken)
    if broken.type.startswith(TOLIST):
        return _list(broken)
    if broken.type.startswith(DYNAMIC_SHAPE) and broken.context.startswith(NUMBER):
        return _number(broken)
    return ()


def _number(broken: Broken) -> Advised:
    """`int(…)` suggests that a size or an index is meant; other numbers may stay tensors. If the
    code branches on the number, the graph breaks at the branch on a tensor or a symbol, too."""
    if _decides(broken):
        return branches.advise(_with_tensor(broken)) or branches.GENERAL
    if _decides_later(broken):
        return branches.GENERAL
    if _is_size(broken) or _is_argument(broken, ("int", *_SIZES)):
        return (_SIZE,)
    if _is_argument(broken, ("float", "bool")):
        return Advice(text="Let torch capture the number as a symbol", code=_SCALARS.code)
    if broken.expression.endswith(".tolist()") and not isinstance(broken.statement, ast.Return):
        return _list(broken)
    stay = _stay_tensor(broken)
    return (_SIZE, *stay) if broken.expression.startswith("int(") else (*stay, _SCALARS)


def _list(broken: Broken) -> tuple[Advice, ...]:
    """Numbers that are gone through one by one can stay tensors; sizes cannot."""
    _, tensor = _number_of(broken)
    iterated = [
        node.iter
        for node in ast.walk(broken.statement or ast.Module([], []))
        if isinstance(node, ast.For | ast.comprehension)
    ]
    place = site(broken)
    if not tensor or place is None or place.expression is None:
        return _LIST
    if ast.unparse(place.expression) not in map(ast.unparse, iterated):
        return _LIST
    symbols, stay = _LIST
    return (
        symbols,
        *place.instead(stay.text, (place.expression, f"{tensor}.unbind()")),
        *place.instead(_NO_GRADIENT, (place.expression, f"{tensor}.detach().unbind()")),
        stay,
    )


def _decides(broken: Broken) -> bool:
    """Whether the number is in the condition of an `if`, a `while` or an `a if c else b`."""
    first = broken.lines[0] if broken.lines else ""
    if first.lstrip().startswith("elif "):
        return True
    column = (broken.column or 0) - (len(first) - len(first.lstrip()))
    for node in ast.walk(broken.statement or ast.Module([], [])):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            for part in ast.walk(node.test):
                place = getattr(part, "lineno", 0), getattr(part, "col_offset", 0)
                if place == (1, column) and isinstance(part, ast.Call):
                    return True
    return False


def _decides_later(broken: Broken) -> bool:
    """Whether a following `if` or `while` of the same block has the variable in its condition."""
    statement = broken.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Name) and any(
        _name(part) == target.id
        for node in broken.rest
        if isinstance(node, ast.If | ast.While | ast.IfExp)
        for part in ast.walk(node.test)
        if isinstance(part, ast.Name)
    )


def _with_tensor(broken: Broken) -> Broken:
    """The same statement with a condition on the tensor. Of several numbers, one is left: then
    nothing is known to work."""
    _, tensor = _number_of(broken)
    changed = replace(broken.with_condition(tensor), type=branches.TYPE)
    statement = changed.statement if tensor else None
    if statement is None or any(call in ast.unparse(statement) for call in COPIES):
        return replace(changed, lines=())
    return changed


_SIZES = ("range", "view", "reshape", "expand", "repeat", "new_zeros", "new_ones", "new_empty")
"""Calls that need numbers: a tensor given to them breaks the graph again."""


def _is_size(broken: Broken) -> bool:
    """Whether the number is assigned to a variable that bounds a slice or is a size further on."""
    statement = broken.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    for node in broken.rest:
        sizes: list[ast.expr | None] = []
        if isinstance(node, ast.Slice):
            sizes = [node.lower, node.upper]
        elif isinstance(node, ast.Call) and _name(node.func) in _SIZES:
            sizes = list(node.args)
        if any(_name(size) == target.id for size in sizes):
            return True
    return False


def _is_argument(broken: Broken, functions: Sequence[str]) -> bool:
    """Whether the statement passes the number, or a value computed from it, to one of these:
    a tensor in its place breaks the graph again."""
    try:
        number = ast.unparse(ast.parse(broken.expression, mode="eval"))
    except (SyntaxError, ValueError):
        return False
    given = (
        argument
        for call in (ast.walk(broken.statement) if broken.statement is not None else ())
        if isinstance(call, ast.Call) and _name(call.func) in functions
        for argument in call.args
    )
    return any(
        isinstance(part, ast.expr) and ast.unparse(part) == number
        for argument in given
        for part in ast.walk(argument)
    )


def _name(node: ast.expr | None) -> str:
    """`view` of `x.view`, `n` of `n`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _stay_tensor(broken: Broken) -> tuple[Advice, ...]:
    """`y.sum().item()` or `float(y.sum())` -> `y.sum()`: correct if the result is only combined
    with tensors."""
    function, tensor = _number_of(broken)
    text = (
        "If it is only combined with tensors, keep it a tensor: one without dimensions works"
        " like a number"
    )
    if function and isinstance(broken.statement, ast.Return):
        text = (
            f"If callers need the numbers, they can call {function} on the tensor that is"
            " returned, after the compiled call"
        )
    code = broken.with_expression(tensor) if tensor else ""
    if not code:
        return (Advice(text=text),)
    simple = isinstance(ast.parse(tensor, mode="eval").body, _ATOMS)
    detached = f"{tensor}.detach()" if simple else f"({tensor}).detach()"
    without = Advice(text=_NO_GRADIENT, code=broken.with_expression(detached), place="statement")
    return (Advice(text=text, code=code, place="statement"), without)


def _number_of(broken: Broken) -> tuple[str, str]:
    """`item()`, `y.sum()` of `y.sum().item()`; empty if the instruction makes no number."""
    call = next((one for one in COPIES if broken.expression.endswith(one)), "")
    if call:
        return call[1:], broken.expression.removesuffix(call)
    function, tensor = _converted(broken.expression)
    return (f"{function}()" if function else ""), tensor


def _converted(expression: str) -> tuple[str, str]:
    """`float`, `y.sum()` of `float(y.sum())`; empty if the expression makes no number so."""
    match = _CONVERSION.match(expression)
    if match is None or not calls(expression, match["function"]):
        return "", ""
    return match["function"], match["tensor"].strip()


def _torch_math(broken: Broken, function: str) -> Advised:
    if not broken.type.startswith((*DYNAMIC_SHAPE, ITEM)) or not broken.expression:
        return ()
    code = broken.with_expression(broken.expression.replace("math.", "torch.", 1))
    return (
        Advice(
            text=f"Use torch.{function.removeprefix('math.')}: the result stays a tensor of the"
            " same dtype",
            code=code,
            place="statement" if code else "",
        ),
        _SCALARS,
    )
