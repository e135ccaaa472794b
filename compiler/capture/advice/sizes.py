"""Operators whose output size depends on data, and what then decides on that size."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from msgspec import structs

from tcw.compiler.capture.advice import branches
from tcw.compiler.capture.advice.broken import Advised, Broken, as_advice
from tcw.compiler.trace.records import Advice

DYNAMIC_SHAPE = ("Dynamic shape operator", "Data dependent operator")
NUMBER = "aten._local_scalar_dense"
"""torch's context of a break at a tensor that becomes a number."""
SETTING = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
_COUNTS = ("numel", "nelement")
_DECISIONS = ("aten.equal.", "aten.allclose.")
"""torch's context of a break at a question about all of two tensors."""


def advise(broken: Broken) -> Advised:
    """With the setting alone, the graph breaks again at an `if` on the size."""
    if not broken.type.startswith(DYNAMIC_SHAPE) or broken.context.startswith(NUMBER):
        return ()
    if broken.context.startswith(_DECISIONS):
        return _decision(broken)
    branch = _branch(broken)
    if branch is not None:
        return _decided(broken, *branch)
    shapes = Advice(
        text="Let torch capture operators whose output size depends on data", code=SETTING
    )
    if broken.context.startswith("aten.nonzero") and broken.expression.endswith("]"):
        return (
            Advice(
                text="If zeros (or another fill value) work as well, use torch.where with the mask:"
                " indexing with a mask gives a tensor whose size depends on data"
            ),
            shapes,
        )
    return shapes


def _decision(broken: Broken) -> Advised:
    """`torch.equal(x, y)` as `(x == y).all()`, where it is the condition of a branch."""
    try:
        call = ast.parse(broken.expression, mode="eval").body
    except (SyntaxError, ValueError):
        return branches.GENERAL
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return branches.GENERAL
    of_torch = ast.unparse(call.func.value) == "torch"
    tensors = [*(() if of_torch else (call.func.value,)), *call.args]
    if call.func.attr == "equal" and len(tensors) == 2:
        first, second = map(ast.unparse, tensors)
        condition = f"({first} == {second}).all()"
    elif call.func.attr == "allclose":
        given = ", ".join(map(ast.unparse, (*tensors, *call.keywords)))
        condition = f"torch.isclose({given}).all()"
    else:
        return branches.GENERAL
    effect = "tensors of different shapes are broadcast" if call.func.attr == "equal" else ""
    asked = replace(broken.with_condition(condition), type=branches.TYPE)
    return tuple(
        structs.replace(one, effect=effect if one.code else "")
        for one in as_advice(branches.advise(asked))
    )


def _decided(broken: Broken, branch: ast.AST, start: int | None) -> Advice:
    if isinstance(branch, ast.While):
        return Advice(
            text="Move the loop out of the compiled function: its end depends on a size that"
            " depends on data"
        )
    made = broken.statement
    code = ""
    if isinstance(branch, ast.If) and start is not None:
        target = made.targets[0] if isinstance(made, ast.Assign) else None
        own = ((target.id, ""),) if isinstance(target, ast.Name) else ()
        code = branches.cond_on_number(branch, (*broken.tensors, *own))
    if not code:
        return Advice(
            text="Let torch capture operators whose output size depends on data"
            " (capture_dynamic_output_shape_ops), and let torch.cond decide on the size: at an `if`"
            " on it the graph breaks again"
        )
    before = "\n".join((*broken.dedented[:start], code))
    return Advice(
        text="If both sides give one shape and dtype: let torch capture operators whose output size"
        " depends on data, and let torch.cond decide on the size",
        code=f"{SETTING}\n{before}",
        changes=broken.replaced_to(branch, start or 0, before),
    )


def _branch(broken: Broken) -> tuple[ast.AST, int | None] | None:
    """What decides on the size of the operator's result, and the line at which it starts, from 0;
    None if it is inside another statement."""
    made = broken.statement
    if made is None:
        return None
    sized = _Sized(broken.expression)
    for start, statement in ((0, made), *broken.following):
        for node in ast.walk(statement):
            if isinstance(node, ast.If | ast.While | ast.IfExp) and sized.asked(node.test):
                return node, start if node is statement else None
        sized.assigned(statement)
    return None


@dataclass
class _Sized:
    """What has a size that depends on data."""

    expression: str
    tensors: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)

    def assigned(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return
        target = statement.targets[0]
        if not isinstance(target, ast.Name):
            return
        self.tensors.discard(target.id)
        self.numbers.discard(target.id)
        if self.asked(statement.value):
            self.numbers.add(target.id)
        elif not _reduces(statement.value) and any(map(self._is, ast.walk(statement.value))):
            self.tensors.add(target.id)

    def asked(self, node: ast.AST) -> bool:
        """Whether an expression asks for such a size. The other sizes of a result, as those of
        `nonzero` after the first, are known."""
        if isinstance(node, ast.Name):
            return node.id in self.numbers
        if isinstance(node, ast.Subscript) and _attribute(node.value) == "shape":
            return self._is_of(node.value) and _is_first(node.slice)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
                return self._is(node.args[0])
            name = _attribute(node.func)
            if name in _COUNTS or (name == "size" and (not node.args or _is_first(node.args[0]))):
                return self._is_of(node.func)
        if _attribute(node) == "shape":
            return self._is_of(node)
        return any(map(self.asked, ast.iter_child_nodes(node)))

    def _is_of(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and self._is(node.value)

    def _is(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.tensors
        return isinstance(node, ast.expr) and ast.unparse(node) == self.expression


def _attribute(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_first(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and index.value == 0


def _reduces(value: ast.expr) -> bool:
    return any(_attribute(node) in branches.REDUCTIONS for node in ast.walk(value))
