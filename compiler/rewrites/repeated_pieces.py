"""The pieces of an operation, copied from those of an equal operation in the graph: layers repeat.

torch takes 0.4 ms to trace a piece: a dispatch, a fake result, a proxy. A copy takes a fourth of
that. It has the name, the metadata and the shared memory that a traced piece would have.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

from tcw.compiler.control.hooks import Hook

HOOK = Hook(
    name="repeated pieces",
    offers="decompositions that repeated layers share",
    needs=(
        "torch._C:_DisablePythonDispatcher",
        "torch.fx.experimental.proxy_tensor:get_proxy_mode",
        "torch.fx.experimental.proxy_tensor:get_proxy_slot",
        "torch.fx.experimental.proxy_tensor:track_tensor_tree",
        "torch.utils._mode_utils:no_dispatch",
    ),
    test="engine/test_repeated_pieces.py",
)

if not HOOK.missing():
    from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot, track_tensor_tree
    from torch.utils._mode_utils import no_dispatch

_PLAIN = (int, float, bool, str, type(None))
_CONSTANTS = (*_PLAIN, torch.dtype, torch.device, torch.layout, torch.memory_format)
_SUFFIX = re.compile(r"_\d+$")


@dataclass(frozen=True, slots=True)
class _Pieces:
    """What one operation became."""

    inputs: tuple[fx.Node, ...]
    """One for each different tensor among the arguments."""
    nodes: tuple[fx.Node, ...]
    outputs: tuple[Any, ...]
    """A tensor as its node. torch copies a result that something else refers to."""
    spec: TreeSpec


_traced: WeakKeyDictionary[Any, dict[object, _Pieces | None]] = WeakKeyDictionary()
"""For each tracer: an operation and its arguments' metadata -> the pieces; None if they cannot be
copied."""


def traced_once(operation: Any, pieces: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition that runs once in a graph for arguments of the same sizes, strides, dtypes
    and values. Pieces of symbolic sizes, and of constants of the graph, are traced each time, as
    are all pieces where torch lacks a need of the hook."""
    if HOOK.missing():
        return pieces

    @functools.wraps(pieces)
    def once(*arguments: Any, **options: Any) -> Any:
        mode = get_proxy_mode()
        if mode is None:
            return pieces(*arguments, **options)
        tracer: Any = mode.tracer
        leaves, spec = tree_flatten((arguments, options))
        tensors, places = _tensors(leaves, tracer)
        if not tensors:
            return pieces(*arguments, **options)
        key = (operation, spec, *map(_about, leaves, places))
        known = _traced.setdefault(tracer, {})
        if key not in known:
            last = next(iter(reversed(tracer.graph.nodes)), None)
            result = pieces(*arguments, **options)
            known[key] = _found(result, tracer, last, tuple(tensors))
            return result
        found = known[key]
        if found is None:
            return pieces(*arguments, **options)
        return _copied(found, tracer, tensors)

    return once


def _tensors(
    leaves: Sequence[Any], tracer: Any
) -> tuple[dict[fx.Node, FakeTensor], list[int | None]]:
    """The nodes of the tensors among the arguments, and the place among these nodes of each
    argument that is a tensor. No nodes if any argument prevents copies."""
    found: dict[fx.Node, FakeTensor] = {}
    order: dict[fx.Node, int] = {}
    places: list[int | None] = []
    for leaf in leaves:
        place = None
        if isinstance(leaf, FakeTensor):
            slot = get_proxy_slot(leaf, tracer, None)
            if slot is None or slot.constant is not None or not _plain(leaf):
                return {}, []
            found.setdefault(slot.proxy.node, leaf)
            place = order.setdefault(slot.proxy.node, len(order))
        elif not isinstance(leaf, _CONSTANTS):
            return {}, []
        places.append(place)
    return found, places


def _plain(tensor: Any) -> bool:
    """A strided tensor of known sizes."""
    if not isinstance(tensor, FakeTensor) or tensor.layout != torch.strided:
        return False
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    known = all(isinstance(number, int) for number in numbers)
    return known and not tensor.is_conj() and not tensor.is_neg()


def _about(leaf: Any, place: int | None) -> object:
    """What the pieces of an operation with this argument depend on."""
    if not isinstance(leaf, FakeTensor):
        return type(leaf), repr(leaf) if isinstance(leaf, float) else leaf  # -0.0 == 0.0
    return place, leaf.dtype, leaf.device, leaf.shape, leaf.stride(), leaf.storage_offset()


def _found(
    result: Any, tracer: Any, last: fx.Node | None, inputs: tuple[fx.Node, ...]
) -> _Pieces | None:
    """The pieces that were traced after the node `last`, or None."""
    nodes: list[fx.Node] = []
    for node in reversed(tracer.graph.nodes):
        if node is last:
            break
        nodes.append(node)
    nodes.reverse()
    own = {*inputs, *nodes}
    for node in nodes:
        values = tree_flatten(node.meta.get("val"))[0]
        schema = getattr(node.target, "_schema", None)
        if (
            node.op != "call_function"
            or (schema is not None and schema.is_mutable)
            or not own.issuperset(node.all_input_nodes)
            or not values
            or not all(map(_plain, values))
        ):
            return None
    outputs: list[Any] = []
    leaves, spec = tree_flatten(result)
    for leaf in leaves:
        slot = get_proxy_slot(leaf, tracer, None) if isinstance(leaf, torch.Tensor) else None
        if slot is not None and slot.constant is None and slot.proxy.node in own:
            outputs.append(slot.proxy.node)
        elif isinstance(leaf, _CONSTANTS):
            outputs.append(leaf)
        else:
            return None
    return _Pieces(inputs, tuple(nodes), tuple(outputs), spec)


def _copied(pieces: _Pieces, tracer: Any, tensors: dict[fx.Node, FakeTensor]) -> Any:
    """The result of the copied pieces for these tensors."""
    copies = dict(zip(pieces.inputs, tensors, strict=True))
    made: dict[fx.Node, Any] = {}
    results: dict[fx.Node, Any] = dict(tensors)
    memories = _Memories(next(iter(tensors.values())).fake_mode)
    for node, tensor in zip(pieces.inputs, tensors.values(), strict=True):
        memories.same(node.meta["val"], tensor)
    with _nothing_traced():
        for node in pieces.nodes:
            arguments = fx.map_arg(node.args, copies.__getitem__)
            options = fx.map_arg(node.kwargs, copies.__getitem__)
            name = _SUFFIX.sub("", node.name)
            copy = tracer.create_node("call_function", node.target, arguments, options, name)
            copies[node] = copy
            if node in pieces.outputs:
                continue  # `track_tensor_tree` writes its metadata
            copy.meta["val"] = tree_map(memories.like, node.meta["val"])
            if "tensor_meta" in node.meta:
                copy.meta["tensor_meta"] = node.meta["tensor_meta"]
        for node in pieces.outputs:
            if isinstance(node, fx.Node) and copies[node] not in results:
                made[copies[node]] = results[copies[node]] = memories.like(node.meta["val"])
    for node, result in made.items():
        track_tensor_tree(result, fx.Proxy(node, tracer), constant=None, tracer=tracer)
    outputs = [
        results[copies[output]] if isinstance(output, fx.Node) else output
        for output in pieces.outputs
    ]
    return tree_unflatten(outputs, pieces.spec)


@contextmanager
def _nothing_traced() -> Iterator[None]:
    with torch._C._DisablePythonDispatcher(), no_dispatch():
        yield


class _Memories:
    """Fake tensors that share memory as others do."""

    def __init__(self, fake_mode: Any) -> None:
        self._mode = fake_mode
        self._memory: dict[int, Any] = {}

    def same(self, theirs: torch.Tensor, ours: torch.Tensor) -> None:
        """The memory of `theirs` is that of `ours`."""
        self._memory[theirs.untyped_storage()._cdata] = ours.untyped_storage()

    def like(self, theirs: torch.Tensor) -> FakeTensor:
        """A tensor with the sizes and strides of `theirs`."""
        key = theirs.untyped_storage()._cdata
        if key not in self._memory:
            size = theirs.untyped_storage().nbytes()
            memory = torch.empty(size, dtype=torch.uint8, device="meta")
            self._memory[key] = memory.untyped_storage()
        made = torch.empty(0, dtype=theirs.dtype, device="meta").set_(
            self._memory[key], theirs.storage_offset(), theirs.shape, theirs.stride()
        )
        return FakeTensor(self._mode, made, theirs.device)
