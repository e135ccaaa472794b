"""The inputs of a lowered graph (its placeholders, the constants of its module), and what loops
need to know of a fake tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.graph import Input, Subgraph
from tcw.compiler.loops.sizes import symbol
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.calls import tensor_in_memory
from tcw.compiler.lowering.elements import number
from tcw.compiler.lowering.ownership import Ownership
from tcw.compiler.lowering.promotion import dtype_name
from tcw.compiler.lowering.registry import Unsupported
from tcw.compiler.lowering.symbolic_sizes import Sizes
from tcw.compiler.lowering.tensors import Meta

_STRIDED = torch.strided


def note_offset(builder: Builder, name: str, value: Any) -> None:
    """Record the storage offset of a tensor in memory."""
    offset = value.storage_offset()
    if type(offset) is not int:
        builder.offsets[name] = None
    elif offset:
        builder.offsets[name] = offset


@dataclass(frozen=True, slots=True)
class GraphInputs:
    """Adds each input to the graph, and notes the value and the meta of its node."""

    _builder: Builder
    _memory: Ownership
    _fake: FakeTensors
    _sizes: Sizes
    _values: dict[fx.Node, Any]
    _metas: dict[fx.Node, Meta]
    _foreign: set[fx.Node]

    def of(self, nodes: list[fx.Node]) -> None:
        """Bind the placeholders. Raises `Unsupported`."""
        tensors: list[tuple[fx.Node, Any]] = []
        for node in nodes:
            value = node.meta.get("val")
            self._builder.node = node.name
            name = self._builder.fresh(node.name)
            if isinstance(value, torch.Tensor):
                tensors.append((node, value))
                self._builder.graph.parameters.append(name)
            elif isinstance(value, torch.SymInt):
                self._builder.graph.parameters.append(self._sizes.bind(value, name))
            elif isinstance(value, torch.SymBool):
                self._builder.graph.parameters.append(name)
                self._values[node] = symbol(name)
            elif node.users and not isinstance(value, (int, type(None))):
                reason = Unsupported(f"the argument {node.name} is a {type(value).__name__}")
                reason.node = next(iter(node.users))
                raise reason
            else:
                self._builder.graph.parameters.append(name)
                self._values[node] = value
        for node, value in tensors:
            if not value._has_symbolic_sizes_strides:
                continue
            for dim, size in enumerate(value.shape):
                if type(size) is not int:
                    self._sizes.show(size, f"{node.name}.size({dim})")
            for dim, stride in enumerate(value.stride()):
                if type(stride) is not int:
                    self._sizes.show(stride, f"{node.name}.stride({dim})")
        for node in nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt):
                self._values[node] = self._sizes.of(value)
        for node, value in tensors:
            self._input(node, value, node.name, constant=False)

    def _input(self, node: fx.Node, value: Any, name: str, *, constant: bool) -> None:
        if value.is_neg():
            raise Unsupported("an input with the negative bit set: loops would ignore the bit")
        meta = self._fake.meta(value)
        self._metas[node] = meta
        if self._fake.device is None and value.dim():
            self._fake.device = value.device
        if not self._fake.is_plain(value, meta):
            self._foreign.add(node)
        self._builder.graph.nodes.append(
            Input(name, meta.dtype, meta.shape, meta.strides, constant)
        )
        self._values[node] = tensor_in_memory(name, meta)
        self._memory.own(name, node)
        note_offset(self._builder, name, value)

    def constant(self, node: fx.Node, value: Any) -> None:
        """Bind an attribute of the module. Raises `Unsupported`."""
        if isinstance(value, fx.GraphModule):
            self._values[node] = Subgraph(node.name)
            return
        if not isinstance(value, torch.Tensor):
            if all(isinstance(user.target, torch._ops.HigherOrderOperator) for user in node.users):
                return  # which refuse it
            raise Unsupported(f"{node.target} is a {type(value).__name__}")
        if type(value) is torch.Tensor and value.numel() == 1 and self._is_number(node, value):
            with unset_fake_temporarily():
                self._inlined(node, value, value.item())
            return
        name = self._builder.fresh(node.name)
        self._builder.graph.constants[name] = str(node.target)
        self._input(node, value, name, constant=True)

    def _is_number(self, node: fx.Node, value: Any) -> bool:
        """Whether a constant may be inlined as a number into the loops that read it."""
        return (
            self._fake.is_plain(value, self._fake.meta(value))
            and value.device.type == "cpu"
            and all(user.target is torch.ops.aten.lift_fresh_copy.default for user in node.users)
        )

    def _inlined(self, node: fx.Node, value: Any, scalar: bool | int | float) -> None:
        self._metas[node] = meta = self._fake.meta(value)
        element = number(scalar, meta.dtype).to(meta.dtype).expression
        made = self._builder.map(element, meta)
        self._values[node] = made
        self._memory.own(made.value, node)


class FakeTensors:
    """The fake tensors of one graph."""

    def __init__(self, sizes: Sizes, device: torch.device | None) -> None:
        self.sizes = sizes
        self.device: Any = device
        """The device that loops run on; None until the first tensor is seen."""

    def meta(self, value: Any) -> Meta:
        """The shape, strides and dtype of a fake tensor."""
        if value.layout is not _STRIDED:
            raise Unsupported(f"a tensor of layout {value.layout}")
        dtype = dtype_name(value.dtype)
        if dtype not in BYTES and value.is_quantized:
            raise Unsupported("a quantized tensor")
        if value._has_symbolic_sizes_strides:
            sizes = self.sizes
            return Meta(sizes.shape(value.shape), sizes.shape(value.stride()), dtype)
        return Meta(tuple(value.shape), value.stride(), dtype)

    def is_plain(self, value: Any, meta: Meta) -> bool:
        """Whether loops support the tensor's dtype and device."""
        if meta.dtype not in BYTES:
            return False
        device = value.device
        return device == self.device or (self.device is None and device.type != "meta")
