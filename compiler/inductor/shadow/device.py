"""A GPU that is not present: inside `pretending`, Inductor and Triton believe in `cuda:0`.

Nothing can run on it. Every place in torch and Triton that is queried about the device during code
generation answers from an `Architecture`, and is restored afterwards.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch._dynamo import device_interface
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from tcw.compiler.control.hooks import patch
from tcw.compiler.gpu.architectures import Architecture
from tcw.compiler.inductor.predicted import predicting

CACHED_ANSWERS = (
    "torch.utils._triton",
    "torch._inductor.utils",
    "torch._inductor.runtime.hints:DeviceProperties",
    "torch._inductor.codegen.cuda.cuda_env",
)
"""Modules and classes whose functions cache answers about the device."""


@contextmanager
def pretending(architecture: Architecture) -> Iterator[None]:
    """Inside, `cuda:0` is a GPU of this architecture. Raises `NoGuard` on failure."""
    with ExitStack() as undo:
        undo.callback(predicting.reset, predicting.set(architecture.name))
        undo.enter_context(cuda_device_guard())
        undo.callback(_forget_answers)
        for owner, name, replacement in _replacements(architecture):
            undo.callback(patch(owner, name, replacement))
        undo.enter_context(_interface(architecture))
        undo.enter_context(_triton_driver(architecture))
        _forget_answers()
        yield


def _constant(value: object) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _here(answer: object, real: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `answer` on the predicting thread; other threads call the real function."""
    return lambda *args, **kwargs: answer if predicting.get() else real(*args, **kwargs)


def _replacements(architecture: Architecture) -> Iterator[tuple[object, str, object]]:
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.runtime import triton_helpers
    from torch._subclasses import fake_tensor

    answers: dict[str, object] = {
        "is_available": True, "device_count": 1, "current_device": 0, "set_device": None,
        "synchronize": None, "_exchange_device": 0, "_maybe_exchange_device": 0,
        "get_device_properties": architecture.properties(),
        "get_device_capability": architecture.capability,
        "get_device_name": architecture.device_name, "get_arch_list": [architecture.name],
        "is_bf16_supported": True, "is_tf32_supported": True,
        "mem_get_info": (architecture.memory_bytes, architecture.memory_bytes),
        "memory_allocated": 0, "set_rng_state": None,
    }  # fmt: skip
    # torch saves and restores the random state around a compile; nothing draws from this one.
    answers["get_rng_state"] = torch.zeros(16, dtype=torch.uint8)
    for name, answer in answers.items():
        yield torch.cuda, name, _here(answer, getattr(torch.cuda, name))
    # As without a GPU: constants stay on the CPU until a node of the graph moves them.
    yield fake_tensor.FakeTensorMode, "avoid_device_init", property(lambda self: True)
    # A fake tensor initialises the GPU that torch reports, and there is none.
    wake = fake_tensor.init_gpu_context
    yield fake_tensor, "init_gpu_context", _here(None, wake)
    # Inductor would send each kernel to its compile workers, which see no GPU.
    yield AsyncCompile, "use_process_pool", classmethod(lambda cls: False)
    yield triton_helpers, "set_driver_to_gpu", _constant(None)


@contextmanager
def _interface(architecture: Architecture) -> Iterator[None]:
    """Dynamo's table of devices, with ours as `cuda`."""
    device_interface.get_interface_for_device("cpu")  # fills the table, once
    table = device_interface.device_interfaces
    before = dict(table)
    ours = _interface_of(architecture)
    table["cuda"] = table["cuda:0"] = ours
    try:
        yield
    finally:
        table.clear()
        table.update(before)


def _interface_of(architecture: Architecture) -> type:
    properties = architecture.properties()
    answers: dict[str, object] = {
        "current_device": 0, "set_device": None, "device_count": 1, "synchronize": None,
        "get_device_properties": properties, "get_raw_stream": 0,
        "current_stream": SimpleNamespace(cuda_stream=0), "exchange_device": 0,
        "maybe_exchange_device": 0, "memory_allocated": 0, "is_bf16_supported": True,
        "is_available": True, "get_compute_capability": architecture.number,
        "is_triton_capable": True, "raise_if_triton_unavailable": None,
    }  # fmt: skip
    worker = {"set_device": None, "current_device": 0, "get_device_properties": properties}
    members: dict[str, object] = {n: staticmethod(_constant(v)) for n, v in answers.items()}
    members["Worker"] = type(
        "Worker", (), {n: staticmethod(_constant(v)) for n, v in worker.items()}
    )
    return type("PredictedCuda", (device_interface.CudaInterface,), members)


@contextmanager
def _triton_driver(architecture: Architecture) -> Iterator[None]:
    before = driver._active
    driver.set_active(_driver(architecture))
    try:
        yield
    finally:
        driver._active = before


def _driver(architecture: Architecture) -> SimpleNamespace:
    """Reports the device's properties to Triton; cannot load or launch anything."""
    properties = _constant(architecture.driver_properties())
    return SimpleNamespace(
        utils=SimpleNamespace(get_device_properties=properties),
        get_current_target=_constant(
            GPUTarget("cuda", architecture.number, architecture.warp_size)
        ),
        get_current_device=_constant(0),
        get_current_stream=_constant(0),
        get_active_torch_device=_constant(torch.device("cuda", 0)),
        get_device_interface=lambda: device_interface.get_interface_for_device("cuda"),
    )


def _forget_answers() -> None:
    """Clear every cache that may hold an answer about the device."""
    for place in CACHED_ANSWERS:
        for clear in _cache_clears(place):
            clear()


@functools.cache
def _cache_clears(place: str) -> tuple[Callable[[], None], ...]:
    module_name, _, attribute = place.partition(":")
    try:
        owner = importlib.import_module(module_name)
    except ImportError:
        return ()
    if attribute:
        owner = getattr(owner, attribute)
    clears = (getattr(getattr(owner, name), "cache_clear", None) for name in dir(owner))
    return tuple(clear for clear in clears if callable(clear))


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
    """Inside, fake CUDA tensors can be created; afterwards the registry is restored.

    C++ looks up their device's guard in the registry of libc10. torch has a no-op guard for a CUDA
    build that finds no GPU (c10/core/impl/DeviceGuardImplInterface.cpp), but installs it only in
    place of one that counts no devices. So such a guard is installed for a moment: an object whose
    virtual methods all return 0.
    """
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
