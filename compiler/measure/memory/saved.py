"""What autograd saves in a forward for its backward, read from the graph that it built.

A node exposes each saved tensor as `_raw_saved_…` (tools/autograd/templates/Functions.cpp). Unlike
`_saved_…`, reading this does not unpack it, so what a checkpoint left out is not recomputed. A
compiled graph stores further tensors in its node's own attributes
(torch/_functorch/_aot_autograd/runtime_wrappers.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from tcw.compiler.measure.calls.leaves import leaves


def saved_bytes(outputs: Any, beyond: Iterable[Any] = ()) -> int:
    """Bytes of the distinct storages that the backward of `outputs` holds, except those of the
    tensors `beyond` (parameters, buffers and inputs, which exist anyway)."""
    known = {_place(tensor) for tensor in beyond if isinstance(tensor, torch.Tensor)}
    found: dict[int, int] = {}
    for node in _nodes(outputs):
        for tensor in _saved(node):
            place = _place(tensor)
            if place and place not in known:
                found[place] = int(tensor.untyped_storage().nbytes())
    return sum(found.values())


def _nodes(outputs: Any) -> Iterator[Any]:
    waiting = [
        value.grad_fn
        for _, value in leaves(outputs)
        if isinstance(value, torch.Tensor) and value.grad_fn is not None
    ]
    seen: set[Any] = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for above, _ in node.next_functions:
            if above is not None and above not in seen:
                seen.add(above)
                waiting.append(above)


def _saved(node: Any) -> Iterator[Any]:
    values: list[Any] = list(vars(node).values()) if hasattr(node, "__dict__") else []
    for name in dir(node):
        if name.startswith("_raw_saved_"):
            raw = getattr(node, name)
            for one in raw if isinstance(raw, list | tuple) else (raw,):
                try:
                    values.append(one.data)  # the tensor, or what a hook packed it as
                except RuntimeError:  # changed in place since: its backward would raise as well
                    continue
    for value in values:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, torch.Tensor):
                yield item


def _place(tensor: Any) -> int:
    """Address of a tensor's memory; 0 if it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0
