"""Higher-order operations: those that wrap one ATen or custom operation, and those that run
subgraphs.

Of one operation, they become calls of that operation:

- `auto_functionalized` and its second version (torch/_higher_order_ops/auto_functionalize.py): an
  operation that writes its arguments, applied to copies of them, which it returns.
- `with_effects` (torch/_higher_order_ops/effects.py): an operation that must run, in order with
  other such operations; its effect token is ignored.
- `run_and_save_rng_state` and `run_with_rng_state` (torch/_prims/rng_prims.py): a random operation
  in a checkpointed region, and its replay in the backward.

Any other, such as `cond`, `while_loop` and `scan`, becomes a call of torch's implementation, which
runs its subgraphs operation by operation. Such a call reads its operands and returns new tensors
(compiler/runtime/operations.py). The whole graph runs on ATen if a subgraph writes a tensor, or if
the graph needs a number that only the call knows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch._higher_order_ops.auto_functionalize import (
    AliasViewInfo,
    AsStridedViewInfo,
    NotView,
    SliceViewInfo,
    get_mutable_args_from_schema,
    read_view_information_from_args,
)

from tcw.compiler.loops.graph import HIGHER_ORDER
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.sizes import subtract
from tcw.compiler.lowering.builder import Builder, logical_strides, storage_order
from tcw.compiler.lowering.calls import Operation, operation
from tcw.compiler.lowering.dimensions import bound
from tcw.compiler.lowering.registry import Unsupported
from tcw.compiler.lowering.tensors import Meta, Tensor
from tcw.compiler.lowering.views import piece

OF_ONE_OPERATION = (
    "with_effects", "auto_functionalized", "auto_functionalized_v2", "run_and_save_rng_state",
    "run_with_rng_state",
)  # fmt: skip

AddCall = Callable[[Operation, Sequence[Any], dict[str, Any], list[Any], bool], tuple[Any, ...]]
"""(operation, arguments, keywords, fake results, whether it returns one tensor) -> its results."""


def refuse_writing(node: fx.Node) -> None:
    """Raises `Unsupported` for an operation that runs subgraphs which write its operands."""
    target = node.args[0] if node.args else None
    if isinstance(target, torch._ops.HigherOrderOperator):
        raise Unsupported(f"{target.name()} writes its operands")


def of_subgraphs(
    add_call: AddCall,
    node: fx.Node,
    parts: Sequence[fx.GraphModule],
    args: list[Any],
    keywords: dict[str, Any],
    number: Callable[[Any], Any],
) -> Any:
    """The results of an operation that runs the graphs `parts`, made by one call of
    torch's implementation; None for those that nothing reads. `number`: what a number is that torch
    knows without the call, such as a size."""
    target: Any = node.target
    name = target.name()
    if getattr(torch.ops.higher_order, name, None) is not target or "mutation" in name:
        raise Unsupported(f"no lowering for the higher-order operation {name}")
    for part in parts:
        written = _written_inside(part)
        if written:
            raise Unsupported(f"{name} runs {written}, which writes a tensor")
    value = node.meta.get("val")
    single = isinstance(value, torch.Tensor)
    if not single and not isinstance(value, (list, tuple)):
        raise Unsupported(f"{name} returns a {type(value).__name__}")
    read = {user.args[1] for user in node.users if user.target is operator.getitem}
    returned = [value] if single else [one if i in read else None for i, one in enumerate(value)]
    known_numbers = {
        i: number(one)
        for i, one in enumerate(returned)
        if one is not None and not isinstance(one, torch.Tensor)
    }
    returned = [None if i in known_numbers else one for i, one in enumerate(returned)]
    known = Operation(f"{HIGHER_ORDER}{name}", None, None, False, True, (), (), ())
    results = add_call(known, args, keywords, returned, single)
    if single:
        return results[0]
    return tuple(known_numbers.get(i, result) for i, result in enumerate(results))


def _written_inside(part: fx.GraphModule) -> str:
    """An operation in a graph, or in one that it runs, that writes a tensor; "" if there is
    none."""
    for module in part.modules():
        for node in module.graph.nodes if isinstance(module, fx.GraphModule) else ():
            target: Any = node.target
            schema = getattr(target, "_schema", None)
            hidden = isinstance(target, torch._ops.HigherOrderOperator) and (
                "mutation" in target.name()
            )
            if hidden or getattr(schema, "is_mutable", False):
                return str(target)
    return ""


def with_effects(add_call: AddCall, args: list[Any], keywords: dict[str, Any], value: Any) -> Any:
    """The results of the wrapped operation, with None for the token."""
    _, target, *rest = args
    _only_aten(target)
    known = replace(operation(target), lowering=None, effect=True)
    returns = target._schema.returns
    single = len(returns) == 1 and not isinstance(value[1], (list, tuple))
    returned = list(value[1:]) if returns else []
    results = add_call(known, rest, keywords, returned, single)
    return (None, *(results or (None,)))


def functionalized(
    builder: Builder,
    add_call: AddCall,
    args: list[Any],
    keywords: dict[str, Any],
    value: Any,
    metas: Callable[[Tensor], Meta],
) -> Any:
    """The results of the wrapped operation, followed by the copies that it wrote."""
    (target,) = args
    _only_aten(target)
    known = operation(target)
    names, types = get_mutable_args_from_schema(target._schema)
    if "_all_bases" in keywords:
        bases = keywords.pop("_all_bases")
        keywords.pop("_only_clone_these_bases", None)
        copies = [_copy(builder, base, metas) for base in bases]
        views = read_view_information_from_args(names, types, keywords, bases)
        for name in names:
            keywords[name] = _regenerated(builder, views[name], copies)
    else:
        keywords.pop("_only_clone_these_tensors", None)
        copies = []
        for name in names:
            given = keywords[name]
            if isinstance(given, list):
                raise Unsupported(f"{known.name} writes a list of tensors")
            copies.append(_copy(builder, given, metas))
            keywords[name] = copies[-1]
    returns = target._schema.returns
    returned = list(value[: len(value) - len(copies)]) if returns else []
    single = len(returns) == 1 and not isinstance(returned[0], (list, tuple))
    results = add_call(known, [], keywords, returned, single)
    return (*(results or (None,)), *copies)


def with_random_state(
    add_call: AddCall, name: str, args: list[Any], keywords: dict[str, Any], value: Any
) -> Any:
    """The results of the wrapped operation, made by one call. `run_and_save_rng_state` returns the
    state before them."""
    saves = name == "run_and_save_rng_state"
    state, target, *rest = (None, *args) if saves else args
    _only_aten(target)
    inner = operation(target)
    if inner.writes:
        raise Unsupported(f"{inner.name} writes its arguments inside {name}")
    known = replace(inner, name=f"{name}:{inner.name}", lowering=None, effect=True, shares=())
    results = value[1] if saves else value
    single = not isinstance(results, (list, tuple))
    returned = [results] if single else list(results)
    if not saves:
        results = add_call(known, [state, *rest], keywords, returned, single)
        return results[0] if single else results
    before, *found = add_call(known, rest, keywords, [value[0], *returned], False)
    return before, found[0] if single else tuple(found)


def random_value(node: fx.Node) -> Any:
    """The node's results as fake tensors; the partitioner creates some such nodes without them."""
    value = node.meta.get("val")
    if value is not None:
        return value
    given = fx.node.map_arg((node.args, node.kwargs), lambda one: one.meta.get("val"))
    args, keywords = given
    saves = node.target.name() == "run_and_save_rng_state"
    target, *rest = args if saves else args[1:]
    mode = detect_fake_mode([one for one in rest if isinstance(one, torch.Tensor)])
    if mode is None:
        raise Unsupported(f"{node.name} has no fake tensors")
    with mode:
        results = target(*rest, **keywords)
    if not saves:
        return results
    return mode.from_tensor(torch.get_rng_state(), static_shapes=True), results


def _only_aten(target: Any) -> None:
    if not isinstance(target, torch._ops.OpOverload):
        raise Unsupported(f"no lowering for the higher-order operation {target}")


def _copy(builder: Builder, tensor: Tensor | None, metas: Callable[[Tensor], Meta]) -> Any:
    """A buffer with the tensor's content and strides."""
    if tensor is None:
        return None
    meta = metas(tensor)
    whole = builder.buffer(meta)
    builder.store(whole, tensor, order=storage_order(meta.shape, meta.strides))
    return whole


def _regenerated(builder: Builder, view: Any, copies: Sequence[Tensor | None]) -> Any:
    if view is None:
        return None
    if isinstance(view, list):
        return [_regenerated(builder, item, copies) for item in view]
    whole = copies[view.base_index]
    if whole is None or isinstance(view, (NotView, AliasViewInfo)):
        return whole
    if isinstance(view, SliceViewInfo):
        size = whole.shape[view.dim]
        start, end = bound(view.start, size, 0), bound(view.end, size, size)
        return piece(builder, whole, view.dim, start, subtract(end, start))
    if isinstance(view, AsStridedViewInfo) and logical_strides(whole) is not None:
        shape = tuple(view.size)
        layout = Layout(shape, tuple(view.stride), view.storage_offset or 0)
        return builder.view(replace(whole, view=()), layout, shape)
    raise Unsupported(f"a view of a written argument: {type(view).__name__}")
