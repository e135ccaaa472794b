"""The cases of the sweep: torch's op database at sizes that users have, and fused patterns."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.utils import _pytree as pytree

from benchmarks.fused_patterns import PATTERNS

SIZES = {"small": 1 << 11, "medium": 1 << 16, "large": 1 << 20}
"""Elements of the largest tensor, about."""
LAYOUTS = ("contiguous", "transposed", "channels-last")
DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int8": torch.int8,
    "bool": torch.bool,
}
NOT_COMPILED = ("linalg.", "fft.", "sparse.", "_refs.", "torch.ops.", "special.airy", "cholesky")
"""What the engine leaves to ATen as Inductor does: factorisations, transforms, sparse tensors."""
SAMPLES = 12
"""Of these samples, the one with the largest tensor is grown."""

Function = Callable[..., Any]


class NoCase(Exception):
    """The operation has no such case; the message says why."""


@dataclass(frozen=True)
class SweepCase:
    """One row of the sweep."""

    name: str
    dtype: str = "float32"
    size: str = "medium"
    layout: str = "contiguous"
    backward: bool = False
    operation: Any = None
    """Of the op database; None for a fused pattern."""

    @property
    def key(self) -> str:
        way = "backward" if self.backward else "forward"
        return " ".join((self.name, self.dtype, self.size, self.layout, way))

    def make(self) -> tuple[Function, list[torch.Tensor]]:
        """The function and its tensors. Raises NoCase."""
        torch.manual_seed(zlib.crc32(self.name.encode()))
        dtype = DTYPES[self.dtype]
        if self.operation is None:
            function, tensors = PATTERNS[self.name](SIZES[self.size], dtype)
        else:
            function, tensors = grown(self.operation, dtype, SIZES[self.size])
        tensors = [in_layout(tensor, self.layout) for tensor in tensors]
        if self.layout != "contiguous" and all(tensor.is_contiguous() for tensor in tensors):
            raise NoCase("no tensor has this layout")
        if self.backward:
            tensors = [t.detach().requires_grad_(t.is_floating_point()) for t in tensors]
        return function, tensors


def cases(quick: bool = False) -> Iterator[SweepCase]:
    """f32 in every size, layout and direction; other dtypes in the medium size. `quick`: only f32,
    contiguous, medium."""
    for name, operation in [*((name, None) for name in PATTERNS), *operations()]:
        yield SweepCase(name, operation=operation)
        if quick:
            continue
        for backward in (False, True):
            for size in SIZES:
                if backward or size != "medium":
                    yield SweepCase(name, size=size, backward=backward, operation=operation)
            for layout in LAYOUTS[1:]:
                yield SweepCase(name, layout=layout, backward=backward, operation=operation)
        for dtype in list(DTYPES)[1:]:
            yield SweepCase(name, dtype, operation=operation)
            if DTYPES[dtype].is_floating_point:
                yield SweepCase(name, dtype, backward=True, operation=operation)


def operations() -> Iterator[tuple[str, Any]]:
    """The op database, without what no engine compiles."""
    from tests.cpu.engine.op_cases import full_name
    from tests.cpu.engine.op_cases import operations as database

    for operation in database():
        name = full_name(operation)
        if not name.startswith(NOT_COMPILED) and not operation.is_factory_function:
            yield name, operation


def grown(operation: Any, dtype: torch.dtype, elements: int) -> tuple[Function, list[torch.Tensor]]:
    """A sample of the database whose largest tensor has about this many elements.

    Equal sizes stay equal, so that shapes still agree; values are drawn from the sample's own, so
    that indices and domains stay legal. A sample that is illegal when it is large is no case.
    """
    if not operation.supports_dtype(dtype, "cpu"):
        raise NoCase(f"no {dtype}")
    samples = islice(operation.sample_inputs("cpu", dtype), SAMPLES)
    best: tuple[Function, list[torch.Tensor]] | None = None
    for sample in samples:
        found = _function_of(operation.op, sample)
        if found[1] and (best is None or _largest(found[1]) > _largest(best[1])):
            best = found
    if best is None or not _largest(best[1]):
        raise NoCase("no sample with a tensor")
    function, tensors = best
    shape = max((t.shape for t in tensors), key=lambda s: s.numel())
    growing = sum(size > 1 for size in shape)
    factor = (elements / shape.numel()) ** (1 / max(growing, 1))
    made = [_larger(tensor, factor) for tensor in tensors]
    try:
        with torch.no_grad():
            function(*[tensor.clone() for tensor in made])
    except Exception as error:
        raise NoCase(f"illegal when it is large: {error}") from None
    return function, made


def _function_of(operation: Function, sample: Any) -> tuple[Function, list[torch.Tensor]]:
    from tests.cpu.engine.op_cases import function_of

    return function_of(operation, sample)


def _largest(tensors: Sequence[torch.Tensor]) -> int:
    return max(tensor.numel() for tensor in tensors)


def _larger(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise NoCase("not a strided tensor")
    if not tensor.numel() or not tensor.dim():
        return tensor.detach()
    shape = [max(1, round(size * factor)) if size > 1 else 1 for size in tensor.shape]
    chosen = torch.randint(tensor.numel(), shape)
    return tensor.detach().flatten()[chosen]


def in_layout(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values in another memory order, if the tensor has enough dimensions."""
    if layout == "transposed" and tensor.dim() >= 2:
        return tensor.mT.contiguous().mT
    if layout == "channels-last" and tensor.dim() == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor.contiguous()


def called(function: Function, tensors: Sequence[torch.Tensor], backward: bool) -> Any:
    """One call: the results, or the gradients of everything that has one."""
    if not backward:
        with torch.no_grad():
            return function(*tensors)
    results = [
        leaf
        for leaf in pytree.tree_leaves(function(*tensors))
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    inputs = [tensor for tensor in tensors if tensor.requires_grad]
    if not results:
        raise NoCase("no gradient")
    ones = [torch.ones_like(result) for result in results]
    return torch.autograd.grad(results, inputs, ones, allow_unused=True)
