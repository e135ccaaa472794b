"""Samples of torch's op database, grown to the sizes that users have."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import prod
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

SAMPLES = 12
"""Samples that are tried, the one with the largest tensor first."""
LOOKED_AT = 200
"""Samples among which those are found: the first ones of an operation may have no elements."""
LARGEST = 16
"""The largest tensor that a case may compute has at most this many times the elements that were
asked for. Larger ones (`cartesian_prod`, `outer`, `kron`) get smaller inputs."""

Function = Callable[..., Any]


class NoCase(Exception):
    """The operation has no such case; the message says why, the reason before a colon."""


def grown(
    operation: Any, dtype: torch.dtype, elements: int, train: bool
) -> tuple[Function, list[torch.Tensor]]:
    """A sample of the database whose largest tensor has about this many elements.

    Equal sizes stay equal, so that shapes still agree; values are drawn from the sample's own, so
    that indices and domains stay legal. All sizes grow if that is legal, otherwise those of one
    dimension alone (the batch of a convolution, the rows of a `view(5, -1)`). With `train`, what is
    differentiable requires a gradient.
    """
    from tests.cpu.engine.op_cases import function_of

    if not operation.supports_dtype(dtype, "cpu"):
        raise NoCase(f"no such dtype: {dtype}")
    samples = islice(operation.sample_inputs("cpu", dtype, requires_grad=train), LOOKED_AT)
    parts = (function_of(operation.op, sample) for sample in samples)
    found = list(islice((part for part in parts if part[1] and _largest(part[1]) > 1), SAMPLES))
    if not found:
        raise NoCase("no sample with a tensor that can grow")
    why: Exception | None = None
    for function, tensors in sorted(found, key=lambda one: -_largest(one[1])):
        for sizes in _growths(tensors):
            try:
                return function, _legal(function, tensors, sizes, elements)
            except NoCase:
                raise
            except Exception as error:
                why = why or error
    raise NoCase(f"illegal when it is large: {why}")


def _largest(tensors: Sequence[torch.Tensor]) -> int:
    return max(tensor.numel() for tensor in tensors)


def _growths(tensors: Sequence[torch.Tensor]) -> Iterator[frozenset[int]]:
    """Which sizes grow: all above 1; else one alone, that of the first dimension first."""
    shape = max((tensor.shape for tensor in tensors), key=lambda s: s.numel())
    sizes = [size for size in dict.fromkeys(shape) if size > 1]
    every = {size for tensor in tensors for size in tensor.shape if size > 1}
    yield frozenset(every)
    if len(every) > 1:
        yield from (frozenset({size}) for size in sizes)


def _legal(
    function: Function, tensors: Sequence[torch.Tensor], sizes: frozenset[int], elements: int
) -> list[torch.Tensor]:
    """The tensors with these sizes grown. Raises what the function raises if that is illegal."""
    shape = max((tensor.shape for tensor in tensors), key=lambda s: s.numel())
    growing = max(1, sum(size in sizes for size in shape))
    share = elements
    while True:
        factor = (share / shape.numel()) ** (1 / growing)
        if any(prod(_shape(tensor, sizes, factor)) > LARGEST * elements for tensor in tensors):
            raise ValueError("one input grows much faster than another")
        made = [_larger(tensor, sizes, factor) for tensor in tensors]
        computed = _largest_computed(function, made)
        if computed <= LARGEST * elements:
            break
        if share <= shape.numel():
            raise NoCase(f"too large: {computed:,} elements")
        share //= 4
    with torch.no_grad():
        function(*[tensor.clone() for tensor in made])
    return made


def _larger(tensor: torch.Tensor, sizes: frozenset[int], factor: float) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise NoCase("not a strided tensor")
    if not tensor.numel() or not tensor.dim():
        return tensor.detach().requires_grad_(tensor.requires_grad)
    chosen = torch.randint(tensor.numel(), _shape(tensor, sizes, factor))
    return tensor.detach().flatten()[chosen].requires_grad_(tensor.requires_grad)


def _shape(tensor: torch.Tensor, sizes: frozenset[int], factor: float) -> list[int]:
    return [max(1, round(size * factor)) if size in sizes else size for size in tensor.shape]


class _Sizes(TorchDispatchMode):
    """Keeps the number of elements of the largest tensor that any operation returns."""

    largest = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.largest = max(self.largest, leaf.numel())
        return result


def _largest_computed(function: Function, tensors: Sequence[torch.Tensor]) -> int:
    """Elements of the largest tensor of a call, intermediate ones too: nothing is computed or
    allocated. 0 if that depends on the data, or if the call is illegal."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    sizes = _Sizes()
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    try:
        inputs = [fake.from_tensor(tensor.detach()) for tensor in tensors]
        with torch.no_grad(), fake, sizes:
            function(*inputs)
    except Exception:
        pass
    return sizes.largest
