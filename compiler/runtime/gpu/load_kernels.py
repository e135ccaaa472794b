"""Fills a loaded unit's table of kernels, and serves arguments whose memory is not aligned."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

from tcw.compiler.control.hooks import Missing
from tcw.compiler.runtime.artifact import Artifact, Unavailable
from tcw.compiler.runtime.gpu.binaries import binaries, code_of
from tcw.compiler.runtime.gpu.copies import copy_all, room_like
from tcw.compiler.runtime.gpu.driver import (
    DeviceKernelStruct,
    DriverError,
    device_calls,
    load_kernels,
)
from tcw.compiler.runtime.gpu.triton_stages import NoTriton
from tcw.compiler.runtime.launcher import Launcher, LoadedUnit
from tcw.compiler.runtime.store import FileStore

ALIGNED = 15
"""As in codegen/launcher/calls.cpp."""


@contextmanager
def kernels_beside(artifact: Artifact, store: FileStore) -> Iterator[None]:
    """Compile the artifact's kernels into the store while what is inside runs. What fails here
    fails again when `fill_table` wants it, and is reported then."""
    with ThreadPoolExecutor(1) as pool:
        if artifact.device_kernels:
            pool.submit(binaries, artifact.module, artifact.device_kernels, artifact.arch, store)
        yield


def fill_table(
    artifact: Artifact, handle: ctypes.CDLL, launcher: Launcher, store: FileStore
) -> None:
    """Compile and load the artifact's kernels, and note their handles in its unit.

    Raises `NoTriton`, `DriverError`, `Missing`, OSError.
    """
    calls = device_calls(artifact.device)
    table = (ctypes.c_void_p * len(calls)).in_dll(launcher.handle, "device_calls")
    table[:] = calls  # type: ignore[call-overload]
    stored_binaries = binaries(artifact.module, artifact.device_kernels, artifact.arch, store)
    codes = []
    for binary in stored_binaries:
        code = code_of(binary, store)
        if code is None:
            raise NoTriton(f"the machine code of {binary.name} is gone from {store.folder}")
        codes.append((code, binary.name, binary.threads, binary.shared))
    kernels = load_kernels(artifact.device, codes)
    (DeviceKernelStruct * max(len(kernels), 1)).in_dll(handle, "device_kernels")[: len(kernels)] = (
        kernels
    )


def gpu_functions(
    artifact: Artifact,
    unit: LoadedUnit,
    launcher: Launcher,
    store: FileStore,
    otherwise: Callable[..., Any] | None,
) -> dict[str, Callable[..., Any]]:
    """The functions of the segments by name; `otherwise` is for the boxed one. Raises as
    `fill_table` does, as `Unavailable`."""
    try:
        fill_table(artifact, unit.handle, launcher, store)
    except (NoTriton, DriverError, Missing) as error:
        raise Unavailable(str(error)) from error
    found: dict[str, Callable[..., Any]] = {}
    for index, segment in enumerate(artifact.segments):
        last = otherwise if segment.boxed else None
        holder: list[Callable[..., Any]] = []

        def call(*given: Any, holder: list[Callable[..., Any]] = holder) -> Any:
            return holder[0](*given)

        unaligned = when_unaligned(call, last, segment.boxed)
        holder.append(unit.function(index, segment, unaligned))
        found[segment.name] = holder[0]
    return found


def when_unaligned(
    call: Callable[..., Any], otherwise: Callable[..., Any] | None, boxed: bool
) -> Callable[..., Any]:
    """What a segment calls when the memory of an argument is not a multiple of 16 bytes.

    Such arguments are copied, and copied back in case they were written. `otherwise` serves
    arguments without memory.
    """

    def run(*given: Any) -> Any:
        arguments = list(given[0]) if boxed else list(given)
        copies: list[tuple[Any, Any]] = []
        for place, argument in enumerate(arguments):
            if isinstance(argument, torch.Tensor) and argument.data_ptr() & ALIGNED:
                arguments[place] = room_like(argument)
                copy_all([arguments[place]], [argument])
                copies.append((argument, arguments[place]))
        if not copies:
            if otherwise is None:
                raise RuntimeError(
                    "a compiled graph was called with a tensor that has no memory (fake or meta)"
                )
            return otherwise(*given)
        results = call(arguments) if boxed else call(*arguments)
        copy_all([one for one, _ in copies], [copy for _, copy in copies])
        if boxed:
            given[0].clear()
        return results

    return run
