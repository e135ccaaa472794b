"""NVIDIA's driver, called through ctypes: loads machine code and finds the kernels in it.

Functions of the CUDA Driver API (docs.nvidia.com/cuda/cuda-driver-api).
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch

from tcw.compiler.control.hooks import Missing, lacking
from tcw.compiler.runtime.addresses import functions, torch_library

LIBRARY = "libcuda.so.1"
STREAM = "aoti_torch_get_current_cuda_stream"
"""torch/csrc/inductor/aoti_torch/c/shim.h."""
NEW = "_Znwm"
"""operator new(unsigned long)"""
EMPTY = (
    "_ZN2at6detail18empty_strided_cudaEN3c108ArrayRefIlEES3_"
    "NS1_10ScalarTypeESt8optionalINS1_6DeviceEE"
)
"""at::detail::empty_strided_cuda(IntArrayRef, IntArrayRef, ScalarType, std::optional<Device>) of
ATen/cuda/EmptyTensor.h: 0.74 us, and 1.03 through the dispatcher (H100, torch 2.11)."""
MOST_SHARED = 48 << 10
"""Bytes of shared memory that a kernel gets without asking."""
MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""


class DriverError(Exception):
    """The driver refused something. The message says what."""


class DeviceKernelStruct(ctypes.Structure):
    """`DeviceKernelStruct` of codegen/launcher/device.cpp."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        ("threads", ctypes.c_uint),
        ("shared", ctypes.c_uint),
    ]


@cache
def driver() -> ctypes.CDLL:
    """The driver's library. Raises `DriverError`."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DriverError(f"no NVIDIA driver: {error}") from error


def call_driver(name: str, *arguments: Any) -> None:
    """Call a function of the driver. Raises `DriverError`."""
    code = getattr(driver(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(code, ctypes.byref(text))
        raise DriverError(f"{name}: {(text.value or b'error').decode()} ({code})")


class Module:
    """Machine code loaded into the current context. It is never unloaded: tensors' work may be
    pending."""

    def __init__(self, code: bytes) -> None:
        self.handle = ctypes.c_void_p()
        call_driver("cuModuleLoadData", ctypes.byref(self.handle), code)

    def function(self, name: str, shared: int) -> int:
        """The handle of a kernel, which may use this many bytes of shared memory."""
        found = ctypes.c_void_p()
        call_driver("cuModuleGetFunction", ctypes.byref(found), self.handle, name.encode())
        if shared > MOST_SHARED:
            call_driver("cuFuncSetAttribute", found, MAX_DYNAMIC_SHARED, shared)
        return found.value or 0


@contextlib.contextmanager
def in_context(context: int) -> Iterator[None]:
    """Inside, a context is current: torch gives a thread its own only when that thread first needs
    it, and autograd compiles a backward on a thread of its own."""
    before = ctypes.c_void_p()
    call_driver("cuCtxGetCurrent", ctypes.byref(before))
    call_driver("cuCtxSetCurrent", ctypes.c_void_p(context))
    try:
        yield
    finally:
        if before.value:
            call_driver("cuCtxSetCurrent", before)


@cache
def device_calls(device: int) -> tuple[int, ...]:
    """The table `DeviceCalls` of codegen/launcher/addresses.cpp, with the device's context.

    Raises `Missing`, `DriverError`.
    """
    torch.cuda.init()
    try:
        torch_cuda = torch_library("libtorch_cuda.so")
        (stream,) = functions(torch_cuda, [STREAM])
    except OSError as error:
        raise lacking(f"no {STREAM} ({error})") from None
    with torch.cuda.device(device):
        torch.cuda.current_stream(device).synchronize()  # creates the context
        context = ctypes.c_void_p()
        call_driver("cuCtxGetCurrent", ctypes.byref(context))
    names = ("cuLaunchKernel", "cuLaunchKernelEx", "cuCtxGetCurrent", "cuCtxSetCurrent")
    found = functions(driver(), names, "the NVIDIA driver")
    try:
        direct = functions(torch_cuda, (NEW, EMPTY))
    except Missing:
        direct = (0, 0)
    return (stream, *found, *direct, context.value or 0)


def load_kernels(
    device: int, codes: Sequence[tuple[bytes, str, int, int]]
) -> list[DeviceKernelStruct]:
    """Kernels ready to launch, from their (machine code, name, threads, shared bytes)."""
    modules: dict[bytes, Module] = {}
    with in_context(device_calls(device)[-1]):
        found = []
        for code, name, threads, shared in codes:
            module = modules.get(code) or modules.setdefault(code, Module(code))
            found.append(DeviceKernelStruct(module.function(name, shared), threads, shared))
        return found
