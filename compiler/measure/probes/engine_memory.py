"""Buffers of a graph of our own engine as tensors, and the nodes whose results they hold."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import torch

from tcw.compiler.engine.step_buffers import GraphBuffers, Number, StepBuffers, StridedForm
from tcw.compiler.loops.sizes import FUNCTIONS
from tcw.compiler.runtime.wrapper_helpers import reinterpreted, retyped

_BUFFERS = msgspec.json.Decoder(GraphBuffers | None)
_NOTHING = StepBuffers((), ())


class ArtifactMemory:
    """A graph's buffers, as its artifact describes them."""

    def __init__(self, extra: msgspec.Raw, steps: int, device: int = -1) -> None:
        """`device`: index of the GPU that has the buffers; -1 for the CPU."""
        self._device = torch.device("cuda", device) if device >= 0 else torch.device("cpu")
        found = _BUFFERS.decode(extra)
        self.forms = found.forms if found is not None else {}
        self.steps = found.steps if found is not None else ()
        self._nodes = found.nodes if found is not None else {}
        if len(self.steps) != steps:
            self.steps = (_NOTHING,) * steps
        self._last = {name: i for i, step in enumerate(self.steps) for name in step.writes}
        self.numbers: dict[str, int] = {}
        """Values of the symbols and arguments known in this call."""

    def complete(self, step: int) -> tuple[str, ...]:
        """Buffers that a step writes and no later step writes to."""
        return tuple(name for name in self.steps[step].writes if self._last[name] == step)

    def at(self, step: int, names: Iterable[str], pointers: Any) -> dict[str, Any]:
        """The kernel's buffers with these names, as tensors on the memory passed to it.

        Buffers of unknown size are left out.
        """
        places = {name: i for i, name in enumerate(self.steps[step].pointers)}
        found: dict[str, Any] = {}
        for name in names:
            form, place = self.forms.get(name), places.get(name)
            if form is None or place is None:
                continue
            tensor = self._tensor(form, pointers[place])
            if tensor is not None:
                found[name] = tensor
        return found

    def nodes(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Nodes of the lowered graph -> their tensors, for nodes in these buffers: as views if
        torch can represent them."""
        found: dict[str, Any] = {}
        for node, (name, form) in self._nodes.items():
            whole, dtype = tensors.get(name), getattr(torch, form.dtype, None)
            if whole is None or dtype is None:
                continue
            known = self._known(form)
            if known is not None:
                found[node] = _shown(whole, dtype, *known)
        return found

    def _tensor(self, form: StridedForm, address: int | None) -> Any:
        known, dtype = self._known(form), getattr(torch, form.dtype, None)
        if known is None or dtype is None:
            return None
        sizes, strides, _ = known
        if 0 in sizes or not address:
            return torch.empty_strided(sizes, strides, dtype=dtype, device=self._device)
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        whole = bytes_at(address, (last + 1) * dtype.itemsize, self._device)
        return whole.view(dtype).as_strided(sizes, strides)

    def _known(self, form: StridedForm) -> tuple[list[int], list[int], int] | None:
        """Sizes, strides and offset; None if one has an unknown symbol."""
        try:
            return (
                [self._number(size) for size in form.sizes],
                [self._number(stride) for stride in form.strides],
                self._number(form.offset),
            )
        except NameError:
            return None

    def _number(self, number: Number) -> int:
        if isinstance(number, int):
            return number
        return int(eval(number, {"__builtins__": {}, **FUNCTIONS}, self.numbers))


def bytes_at(address: int, count: int, device: torch.device) -> torch.Tensor:
    """A flat tensor of bytes on memory that something else keeps alive."""
    if device.type == "cpu":
        return torch.frombuffer((ctypes.c_char * count).from_address(address), dtype=torch.uint8)
    return torch.as_tensor(_OnDevice(address, count), device=device)


class _OnDevice:
    """Memory of a GPU, as the CUDA array interface describes it
    (numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html)."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "|u1", "data": (address, False), "version": 2,
        }  # fmt: skip


def _shown(
    whole: Any, dtype: torch.dtype, sizes: list[int], strides: list[int], offset: int
) -> Any:
    """A tensor on a buffer's memory; a copy if it has negative strides, which torch does not
    support."""
    backwards = [d for d, stride in enumerate(strides) if stride < 0]
    for d in backwards:
        offset += (sizes[d] - 1) * strides[d] if sizes[d] else 0
    forwards = [abs(stride) for stride in strides]
    if whole.dtype == dtype:
        tensor = reinterpreted(whole, sizes, forwards, offset)
    else:
        tensor = retyped(whole, dtype, sizes, forwards, offset)
    return tensor.flip(backwards) if backwards else tensor
