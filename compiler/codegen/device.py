"""Kernels in the language of a GPU, which the functions of a unit launch."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class DeviceKernel(msgspec.Struct, frozen=True):
    """One kernel of a module, in the order in which the unit numbers them."""

    name: str
    types: tuple[str, ...]
    """Of its parameters, as Triton writes them: `*fp32`, `i64`."""
    warps: int
    line: int
    """Of the module's text at which it begins, from 1."""
    count: int
    """How many lines it has."""
    key: str
    """A digest of its code without names and comments: equal for kernels that do the same."""
    checks: bool = False
    """It checks indices, and ends the program if one is out of range."""
    divisible: tuple[tuple[int, int], ...] = ()
    """(parameter, besides pointers; the power of two that it is a multiple of), up to 16."""


@dataclass(frozen=True, slots=True)
class DeviceModule:
    """All kernels of a graph."""

    text: str
    """Python text that defines them with Triton."""
    kernels: tuple[DeviceKernel, ...]
