"""A copy of a CPU's ATen graph, retargeted to `cuda:0`.

The copy shares constants, but nothing that a pass may change. Weights are placeholders, so no data
is copied.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import GraphModule
from torch.fx.node import map_aggregate
from torch.utils._pytree import tree_map

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.graphs.lazy_modules import lazy_module

DEVICE = torch.device("cuda", 0)
LIFTS = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
"""The operations by which a constant enters a graph."""


def retarget(module: Any, inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A copy of `module` and of its example inputs on `cuda:0`, the inputs as fake tensors.

    Tensors and devices that are not on the CPU (`meta`) are unchanged.
    """
    mode = _fake_mode(inputs)
    moved = [_moved(value, mode) for value in inputs]
    return _copied(module, mode, moved), moved


def tell_of_cpu_calls(recorder: Recorder, module: Any, arch: str) -> None:
    """Name the library calls that AOTAutograd chose because the tensors are on the CPU."""
    for node in module.graph.nodes:
        if node.op == "call_function" and "_for_cpu" in str(node.target):
            recorder.warn_once(
                f"{node.target} is the CPU's kernel: on a GPU PyTorch calls another one there; "
                f"the {arch} kernels around it are predicted with its strides"
            )


def _fake_mode(inputs: Sequence[Any]) -> Any:
    tensors = [value for value in inputs if isinstance(value, FakeTensor)]
    if tensors:
        return tensors[0].fake_mode
    return detect_fake_mode(inputs) or FakeTensorMode(allow_non_fake_inputs=True)


def _moved(value: Any, mode: Any) -> Any:
    """A tensor's counterpart on the GPU, with the same sizes, strides and offset: the offset
    decides the alignment."""
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return value
    with mode, torch.no_grad():
        size, stride, offset = value.size(), value.stride(), value.storage_offset()
        if isinstance(offset, int) and offset == 0:
            return torch.empty_strided(size, stride, dtype=value.dtype, device=DEVICE)
        items = value.untyped_storage().nbytes() // value.element_size()
        whole = torch.empty(items, dtype=value.dtype, device=DEVICE)
        return whole.as_strided(size, stride, offset)


def _copied(module: Any, mode: Any, inputs: Sequence[Any] | None = None) -> Any:
    graph = copy.deepcopy(module.graph)
    ours = lazy_module(module, graph)
    ours.meta = dict(module.meta)
    if hasattr(module, "shape_env"):
        ours.shape_env = module.shape_env
    given = iter(inputs) if inputs is not None else None
    for node in list(graph.nodes):
        if "val" in node.meta:
            node.meta["val"] = tree_map(lambda value: _moved(value, mode), node.meta["val"])
        if node.op == "placeholder" and given is not None:
            _share(node, next(given))
        if node.op == "get_attr":
            _move_attribute(ours, node, mode)
        else:
            node.args = map_aggregate(node.args, _device)
            node.kwargs = map_aggregate(node.kwargs, _device)
            _move_factory(node)
    ours.recompile()
    return ours


def _share(node: Any, given: Any) -> None:
    """Let a placeholder stand for the input itself, unless the graph was traced with other strides:
    a backward is, if its forward chose another memory order."""
    traced = node.meta.get("val")
    tensors = isinstance(given, torch.Tensor) and isinstance(traced, torch.Tensor)
    if not tensors or given.stride() == traced.stride():
        node.meta["val"] = given


def _device(value: Any) -> Any:
    return DEVICE if isinstance(value, torch.device) and value.type == "cpu" else value


def _move_factory(node: Any) -> None:
    """`aten.full` and similar operations create a CPU tensor if no device is named."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or any(_is_tensor(each) for each in node.all_input_nodes):
        return
    names = [argument.name for argument in schema.arguments]
    if "device" in names[len(node.args) :] and node.kwargs.get("device") is None:
        node.update_kwarg("device", DEVICE)


def _is_tensor(node: Any) -> bool:
    return node.op == "get_attr" or isinstance(node.meta.get("val"), torch.Tensor)


def _move_attribute(module: Any, node: Any, mode: Any) -> None:
    """Copy a subgraph too. Move a constant by a node, which Inductor folds away."""
    *path, name = node.target.split(".")
    owner = module
    for part in path:
        owner = getattr(owner, part)
    value = getattr(owner, name)
    if isinstance(value, GraphModule):
        setattr(owner, name, _copied(value, mode))
    elif isinstance(value, torch.Tensor) and value.device.type == "cpu":
        for user in list(node.users):
            lifted = user if user.target in LIFTS else _lifted(module.graph, node, user)
            _put_on_device(module.graph, lifted)


def _lifted(graph: Any, node: Any, user: Any) -> Any:
    """The constant as `user` reads it, lifted: only then may fake tensors meet a real one."""
    with graph.inserting_before(user):
        lifted = graph.call_function(torch.ops.aten.lift_fresh_copy.default, (node,), {})
    lifted.meta.update(node.meta)
    user.replace_input_with(node, lifted)
    return lifted


def _put_on_device(graph: Any, node: Any) -> None:
    with graph.inserting_after(node):
        moved = graph.call_function(torch.ops.prims.device_put.default, (node, DEVICE), {})
    moved.meta.update(node.meta)
    node.replace_all_uses_with(moved, delete_user_cb=lambda user: user is not moved)
