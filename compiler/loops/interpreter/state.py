"""Memory, indices and calls: the parts shared by the interpreters of graphs and programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tcw.compiler.loops.expressions import (
    Const,
    Expression,
    Gather,
    IndexTerm,
    Op,
    ReadIndexed,
    SizeOf,
)
from tcw.compiler.loops.graph import DRAWS, Call, Graph, Input, Operand
from tcw.compiler.loops.interpreter.draws import ATEN
from tcw.compiler.loops.interpreter.operator_meanings import (
    Value,
    apply,
    register_dtype,
    rounded,
    torch_dtype,
)
from tcw.compiler.loops.layouts import Shape, View, same_strides
from tcw.compiler.loops.sizes import Size, Symbolic, evaluate, symbol_values

_REDUCES = {"mul": "prod", "maximum": "amax", "minimum": "amin"}
"""torch's words for modes of stores."""


class State:
    """The memory of each value as a flat tensor (index = element offset), and the sizes."""

    def __init__(
        self, graph: Graph, arguments: Sequence[Any], constants: Mapping[str, Any] | None
    ) -> None:
        if len(arguments) != len(graph.parameters):
            raise TypeError(
                f"{graph.name} takes {len(graph.parameters)} arguments, got {len(arguments)}"
            )
        passed = dict(zip(graph.parameters, arguments, strict=True))
        self.graph = graph
        self.sizes = symbol_values(
            {name: v if isinstance(v, torch.Tensor) else int(v or 0) for name, v in passed.items()},
            graph.symbols,
            {name: value for name, value in passed.items() if isinstance(value, torch.Tensor)},
        )
        self.memory: dict[str, Value] = {}
        for node in graph.nodes:
            if not isinstance(node, Input):
                continue
            tensor = (constants or {})[node.name] if node.constant else passed[node.name]
            self._check_input(node, tensor)
            self.memory[node.name] = flat(tensor)

    def _check_input(self, node: Input, tensor: Value) -> None:
        """Raises ValueError unless an argument matches the input that the graph was lowered for."""
        shape, strides = self.shape(node.shape), self.shape(node.strides)
        if tensor.dtype != torch_dtype(node.dtype) or tuple(tensor.shape) != shape:
            raise ValueError(
                f"{node.name} is {tensor.dtype} {tuple(tensor.shape)}, not {node.dtype} {shape}"
            )
        if 0 not in shape and not same_strides(shape, tensor.stride(), strides):
            raise ValueError(f"{node.name} has strides {tensor.stride()}, not {strides}")

    def size(self, size: Size) -> int:
        return evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        return tuple(self.size(size) for size in shape)

    def allocate(self, name: str, dtype: str, size: Size) -> None:
        """Allocate memory filled with NaN or an unlikely number, to expose reads before writes."""
        kind = torch_dtype(dtype)
        poison = float("nan") if kind.is_floating_point else 1 if dtype == "bool" else 85
        self.memory[name] = torch.full((self.size(size),), poison, dtype=kind)

    def tensor(self, operand: Operand) -> Value:
        """A strided tensor that shares the value's memory."""
        memory = self.memory[operand.value]
        if memory.dtype != torch_dtype(operand.dtype):
            raise TypeError(f"{operand.value} is {memory.dtype}, not {operand.dtype}")
        shape, strides = self.shape(operand.shape), self.shape(operand.strides)
        offset = self.size(operand.offset)
        if offset < 0 or offset + span(shape, strides) > max(memory.numel(), offset):
            raise IndexError(f"an operand of {operand.value} exceeds its memory")
        return torch.as_strided(memory, shape, strides, memory.storage_offset() + offset)

    def outputs(self) -> list[Any]:
        """The graph's outputs: tensors over the values' memory, numbers, None."""
        return [
            self.tensor(output)
            if isinstance(output, Operand)
            else self.size(output)
            if isinstance(output, Symbolic)
            else output
            for output in self.graph.outputs
        ]

    def read(self, name: str, address: Value) -> Value:
        """memory[address], in its dtype's register. Raises IndexError if out of bounds."""
        memory = self.memory[name]
        check_range(address, memory.numel(), f"reading {name}")
        return memory[address].to(register_dtype(str(memory.dtype).removeprefix("torch.")))

    def write(self, name: str, address: Value, value: Value, mode: str) -> None:
        """memory[address] = value, both one-dimensional, or combined with it (`StoreMode`). In mode
        `set` the last of equal addresses wins."""
        memory = self.memory[name]
        check_range(address, memory.numel(), f"writing {name}")
        value = value.to(memory.dtype)
        if mode == "add":
            memory.index_add_(0, address, value)
            return
        if mode != "set":
            memory.index_reduce_(0, address, value, _REDUCES[mode])
            return
        last = torch.full((memory.numel(),), -1, dtype=torch.int64)
        last.scatter_reduce_(0, address, torch.arange(len(address)), "amax")
        hit = last >= 0
        memory[hit] = value[last[hit]]

    def through(self, view: View, index: Value) -> Value:
        """view(index) for a tensor of flat indices."""
        for layout in reversed(view):
            shape, strides = self.shape(layout.shape), self.shape(layout.strides)
            total = 1
            for size in shape:
                total *= size
            check_range(index, total, f"the layout {layout}")
            image = torch.full_like(index, self.size(layout.offset))
            for size, stride in zip(reversed(shape), reversed(strides), strict=True):
                image = image + index % max(size, 1) * stride
                index = index // max(size, 1)
            index = image
        return index

    def indexed(
        self, address: Value, terms: tuple[IndexTerm, ...], index_of: Callable[[Expression], Value]
    ) -> Value:
        """address + sum(index * stride). Raises IndexError for an out-of-range index."""
        for term in terms:
            size, index = self.size(term.size), index_of(term.index)
            if term.wraps:
                index = torch.where(index < 0, index + size, index)
            if term.checked:
                check_range(index, size, "an index of a dimension")
            address = address + index * self.size(term.stride)
        return address

    def gathered(
        self,
        name: str,
        address: Value,
        read: Gather | ReadIndexed,
        index_of: Callable[[Expression], Value],
    ) -> Value:
        """memory[address + sum(index * stride)], or `otherwise` where an index is out of range."""
        if read.otherwise is None:
            return self.read(name, self.indexed(address, read.terms, index_of))
        inside = torch.ones_like(address, dtype=torch.bool)
        for term in read.terms:
            index, size = index_of(term.index), self.size(term.size)
            inside = inside & (index >= 0) & (index < size)
            address = address + index * self.size(term.stride)
        found = self.read(name, torch.where(inside, address, torch.zeros_like(address)))
        return torch.where(inside, found, torch.full_like(found, read.otherwise))

    def evaluate(self, expression: Expression, leaf: Callable[[Expression], Value]) -> Value:
        """The expression in its dtype's register. Tensors broadcast against each other."""
        if isinstance(expression, Op):
            args = [self.evaluate(argument, leaf) for argument in expression.args]
            return apply(expression.name, args, expression.dtype)
        if isinstance(expression, Const):
            kind = register_dtype(expression.dtype)
            return rounded(torch.full((1,), expression.number, dtype=kind), expression.dtype)
        if isinstance(expression, SizeOf):
            return torch.full((1,), self.size(expression.size), dtype=torch.int64)
        value = leaf(expression)
        if value.dtype != register_dtype(expression.dtype):
            raise TypeError(f"{type(expression).__name__} {expression} loads {value.dtype}")
        return value

    def call(self, call: Call) -> None:
        """Run one ATen operation and register the memory of its results by name."""
        arguments = self._argument(call.arguments)
        keywords = {name: self._argument(value) for name, value in call.keywords}
        returned = operation(call.target)(*arguments, **keywords)
        tensors = (returned,) if call.single else tuple(returned or ())
        for result, tensor in zip(call.results, tensors, strict=False):
            if result is None:
                continue
            shape, strides = self.shape(result.shape), self.shape(result.strides)
            if tuple(tensor.shape) != shape or tensor.dtype != torch_dtype(result.dtype):
                raise ValueError(
                    f"{call.target} returned {tensor.dtype} {tuple(tensor.shape)} as {result.name},"
                    f" not {result.dtype} {shape}"
                )
            if 0 not in shape and not same_strides(shape, tensor.stride(), strides):
                tensor = torch.empty_strided(shape, strides, dtype=tensor.dtype).copy_(tensor)
            self.memory[result.name] = flat(tensor)

    def _argument(self, argument: object) -> Any:
        if isinstance(argument, Operand):
            return self.tensor(argument)
        if isinstance(argument, Symbolic):
            return self.size(argument)
        if isinstance(argument, (tuple, list)):
            return [self._argument(item) for item in argument]
        return argument


def operation(target: str) -> Callable[..., Any]:
    """The ATen operation of a target such as `aten.mm.default`, or the function of one of
    `DRAWS`."""
    if target.startswith(DRAWS):
        return ATEN[target.removeprefix(DRAWS).removesuffix(".default")]
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """The number of elements from the first to the last in a tensor with strides >= 0."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def flat(tensor: Value) -> Value:
    """A flat tensor that shares a tensor's memory, from its first element on."""
    tensor = tensor.detach()
    reach = span(tensor.shape, tensor.stride())
    return torch.as_strided(tensor, (reach,), (1,), tensor.storage_offset())


def check_range(index: Value, size: int, where: str) -> None:
    """Raises IndexError unless 0 <= index < size."""
    wrong = index[(index < 0) | (index >= size)]
    if wrong.numel():
        raise IndexError(f"index {int(wrong[0])} is out of bounds for size {size}: {where}")
