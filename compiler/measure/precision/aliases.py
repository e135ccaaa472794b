"""Memory that the results of a call share, with each other, with its inputs and with the model.

Whoever changes one of two such tensors in place changes the other, so a compiled call has to share
what the eager one shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import torch

from tcw.compiler.trace.records import AliasDifference

Sharing = Literal["", "memory", "object"]
"""Nothing; elements of both lie in the same place; both are the same tensor."""
Aliases = dict[tuple[str, str], Sharing]
"""(path of a result, path of an earlier result, an input, a parameter or a buffer)."""

_LARGEST = 1 << 24
"""Elements up to which the places of two tensors are compared one by one."""
_SHOWN = 8


def aliases_of(outputs: Iterable[tuple[str, Any]], others: Mapping[str, Any]) -> Aliases:
    """What the results share with each other and with other tensors."""
    known = [(path, value) for path, value in others.items() if _has_memory(value)]
    found: Aliases = {}
    for path, value in outputs:
        if not _has_memory(value):
            continue
        for other, tensor in known:
            sharing = _sharing(value, tensor)
            if sharing:
                found[path, other] = sharing
        known.append((path, value))
    return found


def alias_differences(call: int, compiled: Aliases, eager: Aliases) -> Iterator[AliasDifference]:
    """The pairs that share something on one side only, or something else."""
    for path, other in list(dict.fromkeys((*eager, *compiled)))[:_SHOWN]:
        ours, theirs = compiled.get((path, other), ""), eager.get((path, other), "")
        if ours != theirs:
            yield AliasDifference(call=call, path=path, other=other, compiled=ours, eager=theirs)


def _has_memory(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.numel() > 0
        and bool(_address(value))
    )


def _address(tensor: torch.Tensor) -> int:
    """Of its storage; 0 if it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0


def _sharing(one: torch.Tensor, other: torch.Tensor) -> Sharing:
    if one is other:
        return "object"
    if _address(one) != _address(other) or one.device != other.device:
        return ""
    return "memory" if _overlap(one, other) else ""


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one storage have a byte in common."""
    (begin, end), (first, last) = _extent(one), _extent(other)
    sizes = one.element_size(), other.element_size()
    if end * sizes[0] <= first * sizes[1] or last * sizes[1] <= begin * sizes[0]:
        return False
    if sizes[0] != sizes[1] or max(end, last) > _LARGEST:
        return True
    marks = torch.zeros(max(end, last), dtype=torch.bool)
    places = [
        torch.as_strided(marks, t.shape, t.stride(), t.storage_offset()) for t in (one, other)
    ]
    places[0].fill_(True)
    return bool(places[1].any())


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The first element of the storage that a tensor has, and the one after its last."""
    reach = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return tensor.storage_offset(), tensor.storage_offset() + reach + 1
