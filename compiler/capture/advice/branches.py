"""Branches on tensor data: `torch.where`, `torch.cond`, or no `if` at all."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from msgspec.structs import replace

from tcw.compiler.capture.advice.broken import Advised, Broken, as_advice
from tcw.compiler.trace.records import Advice

TYPE = "Data-dependent branching"
GUARDED = "Could not guard on data-dependent expression"
NUMBER = "SymNodeVariable"
"""torch's message, or its context, if the condition is a number that it captured as a symbol."""
GENERAL = as_advice(
    "Keep the decision in the graph: compute both sides and select with torch.where, or let "
    "torch.cond run one of them"
)
NUMPY = as_advice(
    "If it follows from numbers and sizes alone, compute it with Python's math, not with NumPy: "
    "torch traces NumPy's calls as operations on tensors"
)
"""For a condition of which torch says that it is an array (`NumpyNdarrayVariable`)."""

OF_NUMBER = Advice(
    text="If both sides give one shape and dtype, let torch.cond decide: it takes a condition on a"
    " number that torch captured, as an `if` cannot"
)


def advise(broken: Broken) -> Advised:
    on_number = GUARDED in broken.explanation or NUMBER in broken.context
    if not broken.type.startswith(TYPE) and not on_number:
        return ()
    if on_number and not isinstance(broken.statement, ast.While):
        return _on_number(broken)
    array = "NumpyNdarrayVariable" in broken.context
    return (*NUMPY, *as_advice(_advise(broken))) if array else _advise(broken)


def _advise(broken: Broken) -> Advised:
    statement = broken.statement
    if isinstance(statement, ast.While):
        return (
            "Run a fixed number of iterations and select with torch.where, or move the"
            " loop out of the compiled function: its end depends on data"
        )
    if isinstance(statement, ast.If):
        if not one_question(statement.test):
            return (*_logical(statement.test), *GENERAL)
        return _if(statement, broken)
    ternary = _ternary(statement)
    if ternary is not None and statement is not None:
        if not one_question(ternary.test):
            return (*_logical(ternary.test), *GENERAL)
        return _select_in(statement, ternary)
    return GENERAL


def _on_number(broken: Broken) -> Advised:
    """torch.where takes no condition that is a number, but torch.cond does."""
    statement = broken.statement
    if not isinstance(statement, ast.If) or not one_question(statement.test):
        return OF_NUMBER
    code = cond_on_number(statement, broken.tensors)
    decides = Advice(text=OF_NUMBER.text, code=code, place="statement" if code else "")
    held = f"torch._check({_number_truth(statement.test)})"
    return decides, Advice(
        text="If the condition holds in every call, say so above it", code=held, place="above"
    )


def cond_on_number(statement: ast.If, tensors: Sequence[tuple[str, str]]) -> str:
    """`torch.cond` in place of an `if` on a size or another number; "" if none is known to work."""
    if not one_question(statement.test):
        return ""
    return _cond_code(statement, _number_truth(statement.test), tensors)


def _number_truth(test: ast.expr) -> str:
    """The condition as a symbolic bool, which `not` would make Python's."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return f"torch.sym_not({_number_truth(test.operand)})"
    return ast.unparse(test) if isinstance(test, ast.Compare) else f"{ast.unparse(test)} != 0"


def one_question(test: ast.expr) -> bool:
    """Whether Python evaluates the truth of a single tensor, so that the test can stay a tensor."""
    several = (ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.In, ast.NotIn, ast.Is, ast.IsNot)
    inner = test.operand if isinstance(test, ast.UnaryOp) else test
    for node in ast.walk(inner):
        chained = isinstance(node, ast.Compare) and len(node.ops) > 1
        if chained or isinstance(node, (*several, ast.Not)):
            return False
    return True


def _select_in(statement: ast.stmt, ternary: ast.IfExp) -> Advised:
    """`a if c else b` inside a statement, replaced by `torch.where(c, a, b)`."""
    selected = ast.parse(_select(ternary.test, ternary.body, ternary.orelse), mode="eval").body

    class Replace(ast.NodeTransformer):
        def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
            return selected

    if not _selectable(ternary.body) or not _selectable(ternary.orelse):
        return GENERAL
    copy = ast.parse(ast.unparse(statement)).body[0]
    return (_where(ast.unparse(Replace().visit(copy))), *GENERAL)


def _if(statement: ast.If, broken: Broken) -> Advised:
    if not statement.orelse and _returned(statement.body) is not None:
        start, last = next(broken.following, (0, None))
        if isinstance(last, ast.Return):
            both = ast.If(statement.test, statement.body, [last])
            return tuple(
                replace(one, changes=broken.replaced_to(last, start, one.code) if one.code else ())
                for one in as_advice(_if(both, broken))
            )
    then = _assignment(statement.body)
    otherwise = _assignment(statement.orelse)
    clamp = _clamp_without_if(statement, dict(broken.tensors))
    raised = _raise_as_assert(statement)
    if raised:
        return Advice(
            text="Use an assert: it stays in the graph and is checked when the graph runs"
            " (where it raises a RuntimeError)",
            code=raised,
            effect="the check raises RuntimeError, when the graph runs",
            place="statement",
        )
    if clamp:
        return (
            Advice(
                text="The values are the same without the `if`",
                code=clamp,
                edit="always",
                place="statement",
            ),
            *_cond(statement, broken),
        )
    if then is not None and not statement.orelse:
        name, value = then
        selected = _select(statement.test, value, ast.Name(name))
        return (_where(f"{name} = {selected}"), *_cond(statement, broken))
    if then is not None and otherwise is not None and then[0] == otherwise[0]:
        selected = _select(statement.test, then[1], otherwise[1])
        return (_where(f"{then[0]} = {selected}"), *_cond(statement, broken))
    returned, other = _returned(statement.body), _returned(statement.orelse)
    if returned is not None and other is not None:
        code = f"return {_select(statement.test, returned, other)}"
        return (_where(code), *_cond(statement, broken))
    return GENERAL


def _where(code: str) -> Advice:
    return Advice(
        text="If both sides have the same shape and dtype and no side effects, compute both and"
        " select",
        code=code,
        place="statement",
    )


def _cond(statement: ast.If, broken: Broken) -> tuple[Advice, ...]:
    code = _cond_code(statement, _truth(statement.test), broken.tensors)
    text = "Or run only one side, inside the graph, if both give one shape and dtype"
    return (Advice(text=text, code=code, place="statement"),) if code else ()


def _cond_code(statement: ast.If, truth: str, tensors: Sequence[tuple[str, str]]) -> str:
    """`torch.cond` over the names that both sides read and that are known to be tensors."""
    then, otherwise = _assignment(statement.body), _assignment(statement.orelse)
    target, sides = "", []
    if then is not None:
        target = f"{then[0]} = "
        # torch.cond rejects a branch that returns its operand itself
        unchanged = ast.parse(f"{then[0]}.clone()", mode="eval").body
        sides = [then[1], otherwise[1] if otherwise is not None else unchanged]
    else:
        first, second = _returned(statement.body), _returned(statement.orelse)
        if first is None or second is None:
            return ""
        target, sides = "return ", [first, second]
    known = {name for name, _ in tensors}
    names = sorted({name for side in sides for name in _names(side)} & known)
    if not names:
        return ""
    arguments = ", ".join(names)
    bodies = ", ".join(f"lambda {arguments}: {ast.unparse(side)}" for side in sides)
    operands = f"({arguments},)" if len(names) == 1 else f"({arguments})"
    return f"{target}torch.cond({truth}, {bodies}, {operands})"


def _clamp_without_if(statement: ast.If, dtypes: dict[str, str]) -> str:
    """`if x.abs().max() > c: x = x.clamp(-c, c)` with a constant c >= 0: the clamp alone.

    If no |x| exceeds c, the clamp changes nothing, so the condition is redundant. This does not
    hold for integers, whose smallest value has a negative absolute value.
    """
    test, assigned = statement.test, _assignment(statement.body)
    if statement.orelse or assigned is None or not isinstance(test, ast.Compare):
        return ""
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Gt, ast.GtE)):
        return ""
    bound = test.comparators[0]
    if not isinstance(bound, ast.Constant) or not isinstance(bound.value, (int, float)):
        return ""
    name, value = assigned
    if not dtypes.get(name, "").startswith(("float", "bfloat")):
        return ""
    largest = {f"{name}.abs().max()", f"{name}.abs().amax()", f"torch.max(torch.abs({name}))"}
    largest |= {f"torch.abs({name}).max()", f"torch.abs({name}).amax()"}
    if ast.unparse(test.left) not in largest:
        return ""
    limit = bound.value
    ranges = (f"(-{limit}, {limit})", f"(min=-{limit}, max={limit})")
    clamps = {f"{name}.clamp{limits}" for limits in ranges}
    clamps |= {f"torch.clamp({name}, {limits[1:]}" for limits in ranges}
    written = ast.unparse(value)
    return f"{name} = {written}" if written in clamps else ""


def _raise_as_assert(statement: ast.If) -> str:
    """`if bad: raise Error("why")` as `assert torch.logical_not(bad), "why"`."""
    if len(statement.body) != 1 or statement.orelse:
        return ""
    only = statement.body[0]
    if not isinstance(only, ast.Raise) or not isinstance(only.exc, ast.Call):
        return ""
    message = only.exc.args[0] if only.exc.args else None
    if not isinstance(message, ast.Constant) or not isinstance(message.value, str):
        return ""
    return f"assert torch.logical_not({_truth(statement.test)}), {ast.unparse(message)}"


def _select(test: ast.expr, then: ast.expr, otherwise: ast.expr) -> str:
    return f"torch.where({_truth(test)}, {ast.unparse(then)}, {ast.unparse(otherwise)})"


def _truth(test: ast.expr) -> str:
    """The condition as a bool tensor: a number is true in Python if it is not zero."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if negated and isinstance(test, ast.UnaryOp):
        return f"torch.logical_not({ast.unparse(test.operand)})"
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.unparse(test)
    if isinstance(test, ast.Call) and ast.unparse(test.func).endswith((".any", ".all")):
        return ast.unparse(test)
    text = ast.unparse(test)
    simple = isinstance(test, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return f"{text} != 0" if simple else f"({text}) != 0"


def _logical(test: ast.expr) -> tuple[Advice, ...]:
    if not isinstance(test, ast.BoolOp):
        return ()
    word = "and" if isinstance(test.op, ast.And) else "or"
    return as_advice(
        f"If every operand is a tensor, use torch.logical_{word}: Python's `{word}` needs"
        " each one's truth value on the host"
    )


def _assignment(body: list[ast.stmt]) -> tuple[str, ast.expr] | None:
    """(name, value) of a body that is a single assignment of a selectable value to one name."""
    if len(body) != 1:
        return None
    only = body[0]
    if isinstance(only, ast.Assign) and len(only.targets) == 1:
        target = only.targets[0]
        if isinstance(target, ast.Name) and _selectable(only.value):
            return target.id, only.value
    return None


def _returned(body: list[ast.stmt]) -> ast.expr | None:
    if len(body) == 1 and isinstance(body[0], ast.Return):
        value = body[0].value
        return value if value is not None and _selectable(value) else None
    return None


VIEWS = ("view", "reshape", "squeeze", "unsqueeze", "flatten", "permute", "transpose", "narrow")
SIZES = (
    "cat",
    "stack",
    "pad",
    "expand",
    "repeat",
    "gather",
    "index_select",
    "chunk",
    "split",
    "topk",
)
REDUCTIONS = ("sum", "mean", "max", "min", "amax", "amin", "any", "all", "argmax", "argmin", "norm")
CASTS = ("to", "type", "float", "half", "bfloat16", "double", "long", "int", "bool")
RESHAPING = frozenset((*VIEWS, *SIZES, *REDUCTIONS, *CASTS))
"""Functions whose result has, or may have, another shape or dtype than their tensor."""


def _selectable(expression: ast.expr) -> bool:
    """False if `torch.where` would certainly behave differently.

    A method whose name ends in `_` mutates its tensor; slices and the functions of `RESHAPING`
    change the shape or dtype.
    """
    for node in ast.walk(expression):
        if isinstance(node, (ast.Slice, ast.Starred, ast.Await, ast.Yield, ast.NamedExpr)):
            return False
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in RESHAPING or (name.endswith("_") and not name.endswith("__")):
                return False
    return True


def _ternary(statement: ast.stmt | None) -> ast.IfExp | None:
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)):
        return None
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.IfExp)]
    return nodes[0] if len(nodes) == 1 else None


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
