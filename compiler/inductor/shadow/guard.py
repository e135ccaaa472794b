"""A CUDA device guard for a torch built without CUDA.

Fake CUDA tensors need one: C++ looks up their device's guard in the registry of libc10. torch has a
no-op guard for a CUDA build that finds no GPU (`c10::impl::ensureCUDADeviceGuardSet`,
c10/core/impl/DeviceGuardImplInterface.cpp), but installs it only in place of a guard that counts no
devices. So such a guard is installed for a moment: an object whose virtual methods all return 0.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
"""`c10::impl::device_guard_impl_registry`, an array with one pointer per device type."""
CPU, CUDA = 0, 1
"""`c10::DeviceType`."""
METHODS = 64
"""More than `DeviceGuardImplInterface` has."""


class NoGuard(Exception):
    """This torch offers no way to a CUDA device guard; the message says what is missing."""


@contextmanager
def cuda_device_guard() -> Iterator[None]:
    """Inside, fake CUDA tensors can be created; afterwards the registry is restored."""
    registry = _registry()
    before = registry[CUDA]
    if before:
        # A CUDA build: torch's own function replaces the guard if it finds no GPU.
        torch._C._ensureCUDADeviceGuardSet()
        yield
        return
    zero = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
    address = ctypes.cast(zero, ctypes.c_void_p).value
    methods = (ctypes.c_void_p * METHODS)(*[address] * METHODS)
    placeholder = (ctypes.c_void_p * 2)(ctypes.addressof(methods), None)
    registry[CUDA] = ctypes.addressof(placeholder)
    try:
        torch._C._ensureCUDADeviceGuardSet()
        if registry[CUDA] == ctypes.addressof(placeholder):
            raise NoGuard(f"torch {torch.__version__} kept its CUDA device guard")
        yield
    finally:
        registry[CUDA] = None


def _registry() -> ctypes.Array[ctypes.c_void_p]:
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    try:
        library = ctypes.CDLL(os.path.join(folder, "libc10.so"))
        registry = (ctypes.c_void_p * (CUDA + 1)).in_dll(library, REGISTRY)
    except (OSError, ValueError) as error:
        raise NoGuard(f"torch {torch.__version__} has no registry of device guards") from error
    if not registry[CPU]:
        raise NoGuard(f"torch {torch.__version__} lays out its registry of guards differently")
    return registry
