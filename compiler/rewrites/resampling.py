"""The gradient of a resampling stays ATen's operation.

torch decomposes `upsample_*` before autograd, into reads at indices, whose gradient is as many
additions at those indices. ATen's own gradient goes through the image once: on a CPU, large bicubic
and trilinear images take a tenth of the time. So while a graph is traced, torch's decompositions
before autograd are put aside; the forward is decomposed after it (`decompositions.py`). What stands
in for them takes symbolic sizes, which ATen's functions for the overload `vec` and for gradients of
fake tensors do not.

Source: torch/_decomp/decompositions.py, `py_impl(DispatchKey.Autograd)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook, lacking

RESAMPLING = tuple(
    getattr(torch.ops.aten, name)
    for name in (
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d",
        "_upsample_nearest_exact3d",
        "upsample_linear1d",
        "upsample_bilinear2d",
        "upsample_trilinear3d",
        "upsample_bicubic2d",
    )
)
_IN_THE_FORMAT_OF_THE_GRADIENT = (
    torch.ops.aten.upsample_nearest2d_backward.default,
    torch.ops.aten._upsample_nearest_exact2d_backward.default,
    torch.ops.aten.upsample_bilinear2d_backward.default,
    torch.ops.aten.upsample_trilinear3d_backward.default,
)
_META = torch._C.DispatchKey.Meta
_BEFORE_AUTOGRAD = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)


def missing() -> str:
    """Why torch's decompositions cannot be put aside; "" if they can."""
    for operation in (*_overloads(), *_gradients()):
        for name in ("py_kernels", "_dispatch_cache"):
            if not isinstance(getattr(operation, name, None), dict):
                return str(lacking(f"{operation} has no {name}"))
    return ""


HOOK = Hook(
    name="resampling gradients",
    offers="gradients of resampling as ATen's operation, not as additions at indices",
    needs=("torch._C:DispatchKey.Meta", "torch._prims_common:suggest_memory_format"),
    further=missing,
    test="engine/test_resampling.py",
)


@contextmanager
def resampling_whole(inputs: Sequence[Any]) -> Iterator[None]:
    """Trace resampling as single operations inside, if all tensors of `inputs` are on a CPU."""
    if missing() or any(isinstance(x, torch.Tensor) and x.device.type != "cpu" for x in inputs):
        yield
        return
    aside = [
        (operation, key, operation.py_kernels.pop(key))
        for operation in _overloads()
        for key in _BEFORE_AUTOGRAD
        if key in operation.py_kernels
    ]
    ours = [
        (packet.vec, key, partial(_resample, packet.default))
        for packet in RESAMPLING
        for key in _BEFORE_AUTOGRAD
    ]
    ours += [
        (operation, _META, partial(_gradient_of, operation))
        for operation in _gradients()
        if _META not in operation.py_kernels
    ]
    try:
        for operation, key, kernel in ours:
            operation.py_kernels[key] = kernel
        _forget_dispatch()
        yield
    finally:
        for operation, key, _ in ours:
            del operation.py_kernels[key]
        for operation, key, kernel in aside:
            operation.py_kernels[key] = kernel
        _forget_dispatch()


def _resample(
    operation: Any, image: torch.Tensor, output_size: Sequence[int] | None, *given: Any
) -> torch.Tensor:
    """The overload `vec`, whose kernel in ATen takes no symbolic sizes, in terms of `operation`.

    `given`: `align_corners` if the operation has it, then the scale factors.
    """
    *aligned, factors = given
    if output_size is None:
        output_size = [
            size * int(factor) if int(factor) == factor else torch.sym_int(size * factor)
            for size, factor in zip(image.shape[2:], factors, strict=True)
        ]
    scales = factors or [None] * len(output_size)
    found: torch.Tensor = operation(image, output_size, *aligned, *scales)
    return found


def _gradient_of(
    operation: Any,
    gradient: torch.Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    *_: Any,
) -> torch.Tensor:
    """The fake gradient of the image: ATen's own function for it takes no symbolic sizes.

    Source of the strides: `set_output_raw_strided` in aten/src/ATen/native/UpSample*.cpp.
    """
    found = gradient.new_empty(input_size)
    if operation in _IN_THE_FORMAT_OF_THE_GRADIENT:
        return found.contiguous(memory_format=torch._prims_common.suggest_memory_format(gradient))
    return found


def _forget_dispatch() -> None:
    for operation in (*_overloads(), *_gradients()):
        operation._dispatch_cache.clear()


def _overloads() -> Iterator[Any]:
    for packet in RESAMPLING:
        for overload in ("default", "vec"):
            yield getattr(packet, overload)


def _gradients() -> Iterator[Any]:
    for packet in RESAMPLING:
        yield getattr(torch.ops.aten, f"{packet.__name__}_backward").default
