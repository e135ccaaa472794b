"""How long kernels take on the GPU that they are compiled for: `mode="max-autotune"`.

Buffers are zeroed memory of the sizes that the graph was compiled for, an index of zero is in range
wherever there are elements. L2 is overwritten before each launch. The times are kept with the
kernels' text, so that nothing is measured twice.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from statistics import median
from typing import Any

import msgspec
import torch

from tcw.compiler.codegen.nests.workspace import Workspace
from tcw.compiler.codegen.triton.kernel import TritonKernel
from tcw.compiler.codegen.triton.triton_unit import device_module
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.graph import Input, Result
from tcw.compiler.loops.nest import Program
from tcw.compiler.loops.sizes import Size, evaluate, product, symbol
from tcw.compiler.runtime.gpu.binaries import binaries, code_of, in_threads, triton_version
from tcw.compiler.runtime.gpu.driver import (
    DriverError,
    call_driver,
    device_calls,
    driver,
    in_context,
    load_kernels,
)
from tcw.compiler.runtime.gpu.triton_stages import NoTriton
from tcw.compiler.runtime.store import FileStore, digest

FORMAT = 2
ROUNDS = 5
FLUSH = 1 << 28
"""Bytes that are overwritten before each launch: more than any L2."""

_TIMES = msgspec.json.Decoder(list[float | None])

Code = tuple[bytes, str, int, int]
"""A kernel as `load_kernels` takes it."""


class Timing:
    """Measures the kernels of one program."""

    def __init__(self, program: Program, device: int, arch: str, store: FileStore) -> None:
        self.program = program
        self.device = device
        self.arch = arch
        self.store = store
        self.values: Mapping[str, Any] = program.graph.values()

    def __call__(self, kernels: Sequence[TritonKernel], workspace: Workspace) -> list[float | None]:
        """Microseconds of each; None for one that cannot be compiled or launched here."""
        sizes = [self._bytes(name, workspace) for name in kernels[0].pointers]
        identity = [FORMAT, [kernel.key for kernel in kernels], sizes, self.arch, triton_version()]
        identity.append(torch.cuda.get_device_name(self.device))
        key = digest(msgspec.json.encode(identity))
        known = self.store.read_record("tiles", f"{key}.json", _TIMES)
        if known is not None:
            return known
        codes = in_threads(self._code, kernels, [kernel.body.count("\n") for kernel in kernels])
        try:
            found = self.measured(kernels, codes, sizes)
        except (DriverError, OSError):  # there is no room to measure in
            return [None] * len(kernels)
        self.store.write_sealed("tiles", f"{key}.json", msgspec.json.encode(found))
        return found

    def _number(self, size: Size) -> int:
        return evaluate(size, self.program.graph.hints)

    def _bytes(self, name: str, workspace: Workspace) -> int:
        """Of a buffer; one in the workspace may extend to its end."""
        place = workspace.places.get(name)
        if place is not None:
            return self._number(workspace.bytes) - self._number(place[1])
        memory = self.program.memories.get(name)
        if memory is not None:
            return self._number(memory.size) * BYTES[memory.dtype]
        value = self.values[name]
        if isinstance(value, (Input, Result)):
            pairs = zip(value.shape, value.strides, strict=True)
            span = 1 + sum((self._number(n) - 1) * self._number(step) for n, step in pairs)
            return span * BYTES[value.dtype]
        return self._number(product(value.shape)) * BYTES[value.dtype]

    def measured(
        self, kernels: Sequence[TritonKernel], codes: Sequence[Code | None], sizes: Sequence[int]
    ) -> list[float | None]:
        """Microseconds of each, now. `codes`: None of one that does not compile. `sizes`: bytes of
        each buffer."""
        with _memory([*sizes, FLUSH], self.device) as addresses:
            *pointers, flush = addresses
            with in_context(device_calls(self.device)[-1]), _events() as events:
                found: list[float | None] = []
                for kernel, code in zip(kernels, codes, strict=True):
                    took = None
                    if code is not None:
                        with contextlib.suppress(DriverError):  # it asks for more than there is
                            (loaded,) = load_kernels(self.device, [code])
                            took = self._time(kernel, loaded, pointers, flush, events)
                    found.append(took)
        return found

    def _code(self, kernel: TritonKernel) -> Code | None:
        """What `load_kernels` takes; None if it does not compile."""
        module = device_module([("candidate", kernel)])
        try:
            (binary,) = binaries(module.text, module.kernels, self.arch, self.store)
        except (NoTriton, OSError):
            return None
        code = code_of(binary, self.store)
        return None if code is None else (code, binary.name, binary.threads, binary.shared)

    def _time(
        self, kernel: TritonKernel, code: Any, pointers: Sequence[int], flush: int, events: Any
    ) -> float:
        held: list[Any] = [ctypes.c_uint64(pointer) for pointer in pointers]
        held += [ctypes.c_int64(self._number(symbol(name))) for name in kernel.sizes]
        held += [ctypes.c_uint64(0), ctypes.c_uint64(0)]
        table = (ctypes.c_void_p * len(held))(*(ctypes.addressof(one) for one in held))
        programs = prod(-(-self._number(size) // block) for size, block in kernel.grid)
        start, end = events
        times = []
        for _ in range(ROUNDS + 1):
            _zero(flush, FLUSH)
            call_driver("cuEventRecord", start, None)
            grid = (programs, 1, 1, code.threads, 1, 1, code.shared)
            call_driver("cuLaunchKernel", ctypes.c_void_p(code.function), *grid, None, table, None)
            call_driver("cuEventRecord", end, None)
            call_driver("cuEventSynchronize", end)
            took = ctypes.c_float()
            call_driver("cuEventElapsedTime", ctypes.byref(took), start, end)
            times.append(took.value * 1e3)
        return round(median(times[1:]), 2)


def _zero(address: int, size: int) -> None:
    call_driver("cuMemsetD8_v2", ctypes.c_uint64(address), 0, ctypes.c_size_t(size))


@contextlib.contextmanager
def _events() -> Iterator[list[ctypes.c_void_p]]:
    made = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in made:
        call_driver("cuEventCreate", ctypes.byref(event), 0)
    try:
        yield made
    finally:
        for event in made:
            driver().cuEventDestroy_v2(event)


@contextlib.contextmanager
def _memory(sizes: Sequence[int], device: int) -> Iterator[list[int]]:
    """Zeroed blocks of torch's allocator. Raises `DriverError` if there is no room."""
    found: list[int] = []
    try:
        for size in sizes:
            found.append(torch.cuda.caching_allocator_alloc(max(size, 16), device))
            with in_context(device_calls(device)[-1]):
                _zero(found[-1], max(size, 16))
        yield found
    except torch.OutOfMemoryError as error:
        raise DriverError(str(error)) from error
    finally:
        for address in found:
            torch.cuda.caching_allocator_delete(address)
