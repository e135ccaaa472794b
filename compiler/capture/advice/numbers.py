"""Tensors that become Python numbers, and results whose size depends on data."""

from __future__ import annotations

from compiler.capture.advice.broken import Broken
from compiler.trace.records import Advice

ITEM = "Unsupported Tensor.item() call"
TOLIST = "Tensor.tolist()"
DYNAMIC_SHAPE = ("Dynamic shape operator", "Data dependent operator")

_SCALARS = Advice(
    text="Or let torch capture the number as a symbol",
    code="torch._dynamo.config.capture_scalar_outputs = True",
)


def advise(broken: Broken) -> tuple[Advice, ...]:
    if broken.type.startswith(ITEM):
        return (_stay_tensor(broken), _SCALARS)
    if broken.type.startswith(TOLIST):
        return (
            Advice(
                text="Keep it a tensor: index it, or unbind() it; tolist() copies every element to"
                " the host"
            ),
        )
    if broken.type.startswith(DYNAMIC_SHAPE):
        return _dynamic_shape(broken)
    return ()


def _stay_tensor(broken: Broken) -> Advice:
    """`y.sum().item()` -> `y.sum()`: right wherever the result only meets tensors."""
    line, expression = broken.line, broken.expression
    code = ""
    if expression.endswith(".item()") and line.count(expression) == 1:
        code = line.replace(expression, expression.removesuffix(".item()"))
    return Advice(
        text="Keep it a tensor where it only meets tensors: one without dimensions calculates like"
        " a number",
        code=code,
    )


def _dynamic_shape(broken: Broken) -> tuple[Advice, ...]:
    shapes = Advice(
        text="Let torch capture operators whose result's size depends on data",
        code="torch._dynamo.config.capture_dynamic_output_shape_ops = True",
    )
    if broken.context.startswith("aten.nonzero") and broken.expression.endswith("]"):
        return (
            Advice(
                text="A mask as an index makes a tensor whose size depends on data; torch.where"
                " with the mask keeps the shape, if zeros (or another filler) do as well"
            ),
            shapes,
        )
    if broken.context.startswith("aten._local_scalar_dense"):
        return (_stay_tensor(broken), _SCALARS)
    return (shapes,)
