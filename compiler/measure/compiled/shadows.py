"""Copies of the memory that a real call works on, so that parts of it can be rerun at will.

A shadow is a whole storage: tensors that share memory in the real call share it here. The next
captured step finds what the previous one wrote, provided that nothing else wrote there in between.
Otherwise the next step gets a new shadow with what it really read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

LIMIT = 8 << 30
"""The maximum size in bytes of all copies of one capture."""


class TooMuchMemory(Exception):
    """A call works on more memory than a measurement copies."""


def bytes_of(storage: Any) -> torch.Tensor:
    """A storage as one flat tensor of bytes, on the same memory."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


class StorageCopy:
    """One storage's copy."""

    def __init__(self, storage: Any) -> None:
        real = bytes_of(storage)
        self.data = real.clone()
        """The memory that the steps work on."""
        self.initial = real.clone()
        """The content that the first step found."""

    @property
    def address(self) -> int:
        return int(self.data.data_ptr())

    def restore(self) -> None:
        self.data.copy_(self.initial)


class Shadows:
    """The copies of one capture."""

    def __init__(self) -> None:
        self.all: list[StorageCopy] = []
        self._of: dict[int, StorageCopy] = {}
        self._bytes = 0

    def of(self, storage: Any) -> StorageCopy:
        """The copy with the current content of this storage. Raises `TooMuchMemory`."""
        address = storage.data_ptr()
        known = self._of.get(address)
        if (
            known is not None
            and known.data.numel() == storage.nbytes()
            and torch.equal(known.data, bytes_of(storage))
        ):
            return known
        self._bytes += 2 * storage.nbytes()
        if self._bytes > LIMIT:
            raise TooMuchMemory(f"its buffers are more than {LIMIT >> 30} GB")
        made = self._of[address] = StorageCopy(storage)
        self.all.append(made)
        return made

    def tensor(self, real: torch.Tensor) -> torch.Tensor:
        """A tensor like `real`, on the copy of its storage."""
        shadow = self.of(real.untyped_storage())
        made = torch.empty(0, dtype=real.dtype, device=real.device)
        return made.set_(
            shadow.data.untyped_storage(), real.storage_offset(), real.size(), real.stride()
        )

    def value(self, value: Any) -> Any:
        """As `tensor`, for any argument: non-tensors are returned unchanged."""
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            return self.tensor(value.detach())
        return value


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Arguments of a call, stored for repeated calls: they share memory as the originals do."""
    shadows = Shadows()
    return [shadows.value(value) for value in arguments]
