"""The cases of the sweep: torch's op database at sizes that users have, and fused patterns."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from benchmarks.fused_patterns import PATTERNS
from benchmarks.growing import Function, NoCase, grown

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
NOT_COMPILED = (
    "linalg.",
    "fft.",
    "sparse.",
    "_refs.",
    "torch.ops.",
    "special.airy",
    "cholesky",
    "jiterator",
)
"""What the engine leaves to ATen as Inductor does: factorisations, transforms, sparse tensors; and
CUDA's own."""
UNCHECKED = ("_segment_reduce",)
"""Operations whose tensors of sizes must agree with each other; eager writes out of bounds if those
of a grown sample do not."""


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
            floating = [tensor.is_floating_point() for tensor in tensors]
        else:
            function, tensors = grown(self.operation, dtype, SIZES[self.size], self.backward)
            floating = [tensor.requires_grad for tensor in tensors]
        tensors = [in_layout(tensor.detach(), self.layout) for tensor in tensors]
        if self.layout != "contiguous" and all(tensor.is_contiguous() for tensor in tensors):
            raise NoCase("no tensor has this layout")
        if self.backward:
            tensors = [t.requires_grad_(own) for t, own in zip(tensors, floating, strict=True)]
            function = _differentiable(function, tensors)
        return function, tensors


def _differentiable(function: Function, tensors: Sequence[torch.Tensor]) -> Function:
    """The function; one that writes its inputs, which autograd forbids for leaves, on copies."""
    try:
        called(function, tensors, backward=True)
    except RuntimeError as error:
        if "leaf Variable" not in str(error):
            raise

        def on_copies(*inputs: torch.Tensor) -> Any:
            return function(*[tensor.clone() for tensor in inputs])

        return on_copies
    return function


def cases(quick: bool = False) -> Iterator[SweepCase]:
    """f32 in every size, layout and direction; other dtypes in the medium size. `quick`: only f32,
    contiguous, medium."""
    for name, operation in [*((name, None) for name in PATTERNS), *operations()]:
        for case in _of(name, operation, quick):
            if operation is None or _exists(operation, case):
                yield case


def _of(name: str, operation: Any, quick: bool) -> Iterator[SweepCase]:
    yield SweepCase(name, operation=operation)
    if quick:
        return
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


def _exists(operation: Any, case: SweepCase) -> bool:
    """Whether the database says that the operation has this dtype, and a gradient."""
    dtype = DTYPES[case.dtype]
    if case.backward:
        return bool(
            operation.supports_autograd and dtype in operation.supported_backward_dtypes("cpu")
        )
    return bool(operation.supports_dtype(dtype, "cpu"))


def operations() -> Iterator[tuple[str, Any]]:
    """The op database, without what no engine compiles."""
    from tests.cpu.engine.op_cases import full_name
    from tests.cpu.engine.op_cases import operations as database

    for operation in database():
        name = full_name(operation)
        left_out = name.startswith((*NOT_COMPILED, *UNCHECKED))
        if not left_out and not operation.is_factory_function:
            yield name, operation


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
    if not results or not inputs:
        raise NoCase("no gradient")
    ones = [torch.ones_like(result) for result in results]
    return torch.autograd.grad(results, inputs, ones, allow_unused=True)
