"""The limits of this machine: copy bandwidth and matrix product rates.

Measured once, in about two seconds, with the threads and settings of this process, and stored in
our cache folder by processor (or GPU), threads, torch version and matmul precision. All figures are
the best of many tries. On a busy machine there are none.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch

from tcw.compiler.cache_folder import CacheRefused, cache_folder, private_folder
from tcw.compiler.measure.memory.peak import bytes_in
from tcw.compiler.measure.rounds.team import waited
from tcw.compiler.processor import processor_name
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.trace.records import Bandwidth, Ceilings

DeviceKind = Literal["cpu", "cuda"]

_VERSION = 2
"""Raised to invalidate figures that were measured in an earlier way."""
_SMALLEST = 1 << 15
_LARGEST_CPU = 1 << 30
_LARGEST_CUDA = 1 << 32
_COPY_SECONDS = 0.04
"""Seconds per working set."""
_PRODUCT_SECONDS = 0.15
"""Seconds per dtype."""
_FEWEST = 3
"""Calls that are timed at least."""
_WAITING = 0.05
"""Share of the time. Above it, threads had to wait for a processor."""
_PATIENCE = 3.0
"""Seconds to keep trying on a busy machine."""
_DTYPES = ("float32", "bfloat16", "float16", "float64")

_DECODER = msgspec.json.Decoder(Ceilings)
_encode = msgspec.json.Encoder().encode


def ceilings(kind: DeviceKind = "cpu") -> Ceilings | None:
    """The limits of the CPU or the current GPU, from the cache or measured now; None on a busy
    machine.

    If the cache folder cannot be used, the figures are measured and not stored. Concurrent
    processes measure one after the other, so that they do not disturb each other.
    """
    try:
        store = FileStore(private_folder(cache_folder() / "ceilings"))
    except CacheRefused:
        return measured(kind)
    name = sha256(_encode(_key(kind))).hexdigest()[:32]
    found = _kept(store, name)
    if found is not None:
        return found
    with store.locked(name):
        found = _kept(store, name) or measured(kind)
        if found is not None and not found.kept:
            with contextlib.suppress(OSError):
                store.write_sealed("measured", name, _encode(found))
    return found


def _kept(store: FileStore, name: str) -> Ceilings | None:
    found = store.read_record("measured", name, _DECODER)
    return None if found is None else msgspec.structs.replace(found, kept=True)


def _key(kind: DeviceKind) -> list[object]:
    """Everything that the figures depend on."""
    return [
        _VERSION,
        kind,
        device_name(kind),
        torch.get_num_threads() if kind == "cpu" else 0,
        len(os.sched_getaffinity(0)) if kind == "cpu" else 0,
        str(torch.__version__),
        torch.get_float32_matmul_precision(),
    ]


def device_name(kind: DeviceKind) -> str:
    """`AMD EPYC 9B14`, `NVIDIA H200`."""
    return processor_name() if kind == "cpu" else str(torch.cuda.get_device_name())


def measured(kind: DeviceKind = "cpu") -> Ceilings | None:
    """Measure now; None if other programs use the processors meanwhile. Draws no random numbers."""
    timer = _CPU() if kind == "cpu" else _GPU()
    ends = time.perf_counter() + _PATIENCE
    with torch.no_grad():
        while True:
            before, start = waited_seconds(), time.perf_counter()
            bandwidth, rates = _bandwidth(timer, _largest(kind)), _rates(timer)
            busy = waited_seconds() - before > _WAITING * (time.perf_counter() - start)
            if kind == "cuda" or not busy:
                break
            if time.perf_counter() > ends:
                return None
    precision = torch.get_float32_matmul_precision()
    return Ceilings(
        device=device_name(kind),
        kind=kind,
        threads=torch.get_num_threads() if kind == "cpu" else 0,
        bandwidth=bandwidth,
        rates=rates,
        measured=time.time(),
        note="" if precision == "highest" else f"float32 products in precision {precision!r}",
    )


class _CPU:
    """Times actions by the host's clock."""

    device = "cpu"

    def best(self, action: Callable[[], object], seconds: float) -> float:
        """About the shortest of many back-to-back calls, each timed."""
        read = time.perf_counter_ns
        taken: list[int] = []
        before = read()
        ends = before + int(seconds * 1e9)
        while before < ends or len(taken) < _FEWEST:
            before = read()
            action()
            taken.append(read() - before)
        return sorted(taken)[_FEWEST // 2] / 1e9

    def empty(self, action: Callable[[], object]) -> float:
        """The overhead of a call that does next to nothing, in seconds."""
        return self.best(action, _COPY_SECONDS)


def waited_seconds() -> float:
    """Seconds that the threads of this process were ready to run without a free processor."""
    folder = Path("/proc/self/task")
    return sum(waited(int(path.name)) for path in folder.iterdir()) if folder.exists() else 0.0


class _GPU:
    """Times actions by the GPU's clock, many in one CUDA graph, to exclude launch latency."""

    device = "cuda"

    def best(self, action: Callable[[], object], seconds: float) -> float:
        once = self._events(action)
        count = max(1, min(100, int(seconds / 4 / max(once, 1e-6))))
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            graph.capture_begin()
            try:
                for _ in range(count):
                    action()
            finally:
                graph.capture_end()
        return min(self._events(graph.replay) for _ in range(5)) / count

    def _events(self, action: Callable[[], object]) -> float:
        action()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        action()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) / 1e3

    def empty(self, action: Callable[[], object]) -> float:
        return 0.0  # a kernel's own start is part of what the GPU can do


def _bandwidth(timer: _CPU | _GPU, largest: int) -> tuple[Bandwidth, ...]:
    """Of copies with working sets of each power of two, in bytes read and written together. For the
    smallest sets the call overhead dominates; at most half of the time is subtracted."""
    source, target = (
        torch.ones(largest // 2, dtype=torch.uint8, device=timer.device) for _ in range(2)
    )

    def copy(size: int) -> Callable[[], object]:
        return partial(torch.ops.aten.copy_.default, target[: size // 2], source[: size // 2])

    empty = timer.empty(copy(2))
    bandwidths: list[Bandwidth] = []
    least = float("inf")
    for power in range(largest.bit_length() - 1, _SMALLEST.bit_length() - 2, -1):
        size = 1 << power
        # a smaller set takes no longer than a larger one
        least = min(least, timer.best(copy(size), _COPY_SECONDS))
        bandwidths.append(Bandwidth(bytes=size, per_second=size / max(least - empty, least / 2)))
    return tuple(reversed(bandwidths))


def _rates(timer: _CPU | _GPU) -> dict[str, float]:
    """FLOP/s by dtype, of products of square matrices that are large enough to fill the machine."""
    rates: dict[str, float] = {}
    for name in _DTYPES:
        dtype, rate, done = getattr(torch, name), 0.0, 0
        # as large as a fifth of the budget allows, which only trying reveals
        while (size := _size_for(rate)) > done:
            try:
                one, other = (_matrix(size, dtype, timer.device) for _ in range(2))
                out = torch.mm(one, other)
                best = timer.best(partial(torch.mm, one, other, out=out), _PRODUCT_SECONDS / 3)
            except RuntimeError:  # this build or GPU has no such product, or no memory for it
                break
            done = size
            rate = max(rate, 2 * size**3 / best)
        if rate:
            rates[name] = rate
    return rates


def _size_for(rate: float) -> int:
    wanted = (rate * _PRODUCT_SECONDS / 5 / 2) ** (1 / 3)
    return max(256, min(8192, int(wanted) // 256 * 256))


def _matrix(size: int, dtype: torch.dtype, device: str) -> Any:
    """Distinct values, small enough that sums stay exact in half precision's range."""
    row = (torch.arange(size * size, device=device) % 7 - 3).reshape(size, size)
    return (row / 4).to(dtype)


def _largest(kind: DeviceKind) -> int:
    """Bytes of the largest working set: well beyond the last-level cache, within free memory."""
    if kind == "cuda":
        cache = int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)
        free = int(torch.cuda.mem_get_info()[0])
        limit, least = _LARGEST_CUDA, 1 << 29
    else:
        cache, free, limit, least = _last_cache(), _free_memory(), _LARGEST_CPU, 1 << 27
    wanted = min(limit, max(least, 4 * cache), free // 4)
    return max(1 << (wanted.bit_length() - 1), 2 * _SMALLEST)


def _last_cache() -> int:
    """Bytes of all last-level caches of the processors that this process may use."""
    found: dict[str, tuple[int, int]] = {}
    for number in os.sched_getaffinity(0):
        folder = Path(f"/sys/devices/system/cpu/cpu{number}/cache")
        try:
            for index in folder.glob("index*"):
                size = (index / "size").read_text().strip()
                shared = (index / "shared_cpu_list").read_text().strip()
                level = int((index / "level").read_text())
                found[f"{level}:{shared}"] = (level, int(size.rstrip("K")) * 1024)
        except (OSError, ValueError):
            continue
    last = max((level for level, _ in found.values()), default=0)
    return sum(size for level, size in found.values() if level == last)


def _free_memory() -> int:
    """Available memory in bytes; a small amount if the system does not report it."""
    return bytes_in(Path("/proc/meminfo"), "MemAvailable") or 1 << 29
