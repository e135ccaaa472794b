"""What autograd saves in a forward for its backward, read from the graph that it built.

A node exposes each saved tensor as `_raw_saved_…` (tools/autograd/templates/Functions.cpp). Unlike
`_saved_…`, reading this does not unpack it, so what a checkpoint left out is not recomputed; what
the checkpoint keeps instead is found from the hook that would unpack it. A compiled graph stores
further tensors in its node's own attributes
(torch/_functorch/_aot_autograd/runtime_wrappers.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from tcw.compiler.measure.calls.leaves import leaves

_LOOKED_AT = 10_000
"""The maximum number of objects that are looked at for one node."""


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


def _saved(node: Any) -> Iterator[torch.Tensor]:
    values: list[Any] = list(vars(node).values()) if hasattr(node, "__dict__") else []
    for name in dir(node):
        if name.startswith("_raw_saved_"):
            raw = getattr(node, name)
            values += raw if isinstance(raw, list | tuple) else (raw,)
    return _held(values)


def _held(values: list[Any]) -> Iterator[torch.Tensor]:
    """The tensors among these values, and what the hooks that unpack them keep: a checkpoint keeps
    the arguments of its region, to compute the rest again (torch/utils/checkpoint.py). The state of
    the random generator, of which it keeps a copy, is none of the model's."""
    generator = torch.get_rng_state().numel()
    waiting, seen = list(values), set[int]()
    while waiting and len(seen) < _LOOKED_AT:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if not (value.dtype is torch.uint8 and value.numel() == generator):
                yield value
        elif type(value).__name__ == "SavedTensor":
            waiting.append(getattr(value, "unpack_hook", None))
            try:
                waiting.append(value.data)  # the tensor, or what a hook packed it as
            except RuntimeError:  # changed in place since: its backward would raise as well
                continue
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, partial):
            waiting += (value.func, *value.args, *value.keywords.values())
        elif isinstance(value, MethodType):
            waiting += (value.__func__, value.__self__)
        elif isinstance(value, FunctionType):
            waiting += value.__defaults__ or ()
            for cell in value.__closure__ or ():
                with suppress(ValueError):  # a cell that is empty
                    waiting.append(cell.cell_contents)
        elif not isinstance(value, torch.nn.Module | ModuleType | type):
            waiting += getattr(value, "__dict__", {}).values()


def _place(tensor: Any) -> int:
    """Address of a tensor's memory; 0 if it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0
