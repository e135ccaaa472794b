"""Eager in its own precision with each rounding perturbed: what rounding can make of a result.

Parker's Monte Carlo arithmetic by operation, as CADNA and Verificarlo do it by instruction
(docs/notes/precision.md). Each result of an operation that rounds is off by a unit of its dtype to
a random side; of one that sums many terms, so are the terms, by more units the more there are. At a
kink (ReLU, max, sort, a comparison) a perturbed value may fall on the other side, as it may in
another order of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tcw.compiler.measure.precision import operations
from tcw.compiler.measure.precision.arithmetic import Signs, more_for, unit_of


class Perturbed(TorchDispatchMode):  # type: ignore[misc]
    """Inside the block, operations are perturbed, of the backward as well. No random numbers are
    drawn from the generators that the model uses."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._signs = Signs(seed)

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        given = _floats((args, kwargs))
        exact = operations.is_exact(function) or operations.is_uninitialised(function)
        if not given or exact or operations.is_view(function):
            return function(*args, **kwargs)
        written = operations.written(function)
        result = function(*args, **kwargs)
        if not written and torch.Tag.nondeterministic_seeded not in function.tags:
            results = _floats(result)
            count = operations.terms(function, (args, kwargs, result), given, results or given)
            if results and count > 1:
                changed = pytree.tree_map(lambda one: self._term(one, count), (list(args), kwargs))
                result = function(*changed[0], **changed[1])
        for place, name in written:
            tensor = args[place] if place < len(args) else kwargs.get(name)
            if _is_float(tensor):
                tensor.copy_(self._off(tensor, unit_of(tensor.dtype)))
        if written:
            return result
        return pytree.tree_map(self._rounded, result)

    def _rounded(self, value: Any) -> Any:
        return self._off(value, unit_of(value.dtype)) if _is_float(value) else value

    def _term(self, value: Any, count: float) -> Any:
        if not _is_float(value):
            return value
        computed = torch.float64 if value.dtype is torch.float64 else torch.float32
        return self._off(value, unit_of(computed) * more_for(count))

    def _off(self, value: torch.Tensor, amount: float) -> torch.Tensor:
        if torch.finfo(value.dtype).bits > 16:
            return self._signs.off(value, amount)
        wide = value.to(torch.complex64 if value.is_complex() else torch.float32)
        return self._signs.off(wide, amount).to(value.dtype)


def _is_float(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and (value.is_floating_point() or value.is_complex())
    )


def _floats(value: Any) -> list[torch.Tensor]:
    return [one for one in pytree.tree_leaves(value) if _is_float(one)]
