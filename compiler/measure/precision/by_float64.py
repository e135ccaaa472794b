"""Results that `assert_close` rejects, against those of the same call in float64.

A compiled model rounds elsewhere than eager does, in 16 bits often less: a difference is an error
only if the compiled result is further from float64 than eager's, which is also how torch judges
its benchmarks (`torch._dynamo.utils.same`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.calls.runs import Model
from tcw.compiler.measure.precision.compare import EAGER_FACTOR, FEW, FEW_FACTOR
from tcw.compiler.measure.precision.numerics import Leaves, accepted_by_torch

_LIMIT_BYTES = 2 << 30
"""A float64 copy of the model and its inputs takes at most this much."""
_CHAOTIC = 1 / 8
"""If eager's error is larger, relative to the largest of the results that are compared with it,
then float64 says nothing about either."""
_WIDE = (torch.float64, torch.complex128)


@dataclass(frozen=True, slots=True)
class Distance:
    """The largest |result - float64| among the rejected results."""

    compiled: float
    eager: float
    right: bool
    """Whether each compiled result is as close as eager's."""


def distance(pairs: Iterable[tuple[Leaves, Leaves]], exact: Mapping[str, Any]) -> Distance | None:
    """Of the compiled and the eager results by path; None if float64 does not decide it."""
    found = []
    for compiled, eager in pairs:
        theirs = dict(eager)
        if theirs.keys() != dict(compiled).keys():
            return None
        scale = max((_size(exact[path]) for path in theirs if path in exact), default=0.0)
        for path, value in compiled:
            if accepted_by_torch(value, theirs[path]):
                continue
            one = _distance(value, theirs[path], exact.get(path), scale)
            if one is None:
                return None
            found.append(one)
    if not found:
        return None
    return Distance(
        max(one.compiled for one in found),
        max(one.eager for one in found),
        all(one.right for one in found),
    )


def _distance(compiled: Any, eager: Any, exact: Any, scale: float) -> Distance | None:
    three = (compiled, eager, exact)
    if not all(isinstance(one, torch.Tensor) and one.layout is torch.strided for one in three):
        return None
    if compiled.dtype != eager.dtype or not compiled.shape == eager.shape == exact.shape:
        return None
    if not (compiled.is_floating_point() or compiled.is_complex()):
        return None
    if exact.dtype == eager.dtype not in _WIDE and torch.equal(exact, eager):
        return None  # not computed in float64: a `forward` of another module, whose dtype it has
    ours, theirs, right = (_wide(one) for one in three)
    finite = torch.isfinite(right)
    if not all(bool((torch.isfinite(one) == finite).all()) for one in (ours, theirs)):
        return None
    ours, theirs, right = ours[finite], theirs[finite], right[finite]
    if _root_mean_square(theirs - right) > _CHAOTIC * scale:
        return None
    factor = EAGER_FACTOR if right.numel() >= FEW else FEW_FACTOR
    unit = torch.finfo(compiled.dtype).eps
    close = all(
        size(ours - right) <= max(factor * size(theirs - right), unit * size(right))
        for size in (_root_mean_square, _largest)
    )
    return Distance(_largest(ours - right), _largest(theirs - right), close)


def _size(value: Any) -> float:
    """The root mean square of a result; 0 for what is no dense tensor."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return 0.0
    values = _wide(value)
    return _root_mean_square(values[torch.isfinite(values)])


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().cpu().to(wide)


def _root_mean_square(values: torch.Tensor) -> float:
    return float(values.abs().square().mean().sqrt()) if values.numel() else 0.0


def _largest(values: torch.Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


def in_float64(model: Model, inputs: InputSet) -> tuple[Model, InputSet] | None:
    """`model`, which is changed, and a copy of its inputs, with float64 for each float dtype; None
    if they would be too large."""
    module = isinstance(model, torch.nn.Module)
    tensors = [*model.state_dict().values()] if isinstance(model, torch.nn.Module) else []
    tensors += [value for _, value in leaves((inputs.positional, inputs.keyword))]
    if sum(8 * one.numel() for one in tensors if isinstance(one, torch.Tensor)) > _LIMIT_BYTES:
        return None
    wide = InputSet(_widened(inputs.positional), _widened(inputs.keyword))
    return (model.double() if module else model), wide  # type: ignore[attr-defined]


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if not (value.is_floating_point() or value.is_complex()):
            return value
        return _wide(value).to(value.device).requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(_widened(item) for item in value)
    if type(value) is dict:
        return {key: _widened(item) for key, item in value.items()}
    return value
