"""The limits of this machine: copy bandwidth and matrix product rates.

Measured once, in about two seconds, with the threads and settings of this process, and stored in
our cache folder by processor (or GPU), threads, torch version and matmul precision. All figures are
the best of many tries. Figures that a busy machine keeps disturbing are left out, and then none are
stored.
"""

from __future__ import annotations

import contextlib
import os
import time
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
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

_VERSION = 1
"""Raised to invalidate figures that were measured in an earlier way."""
_SMALLEST = 1 << 15
_LARGEST_CPU = 1 << 30
_LARGEST_CUDA = 1 << 32
_COPY_SECONDS = 0.04
"""Seconds per working set."""
_PRODUCT_SECONDS = 0.15
"""Seconds per dtype."""
_AGREEING = 3
_AGREEMENT = 1.2
"""The best calls agree if the slowest of them takes at most this many times the fastest."""
_WAITING = 0.05
"""Share of the time. Above it, threads had to wait for a processor."""
_SLICE = 5e-4
"""Seconds; a scheduler gives a processor to others for longer than this."""
_PATIENCE = 3.0
"""Seconds to keep trying on a busy machine."""
BUSY = "a busy machine disturbed the rest; not kept"
_DTYPES = ("float32", "bfloat16", "float16", "float64")

_DECODER = msgspec.json.Decoder(Ceilings)
_encode = msgspec.json.Encoder().encode


def ceilings(kind: DeviceKind = "cpu") -> Ceilings:
    """The limits of the CPU or the current GPU, from the cache or measured now.

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
        found = _kept(store, name)
        if found is None:
            found = measured(kind)
            if not found.partial:
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


def measured(kind: DeviceKind = "cpu") -> Ceilings:
    """Measure now. Draws no random numbers."""
    timer = _CPU() if kind == "cpu" else _GPU()
    with torch.no_grad():
        copies, products = _Copies(timer, _largest(kind)), _Products(timer)
        copies.measure()
        products.measure()
        ends = time.perf_counter() + _PATIENCE
        while not (copies.settled and products.settled) and time.perf_counter() < ends:
            time.sleep(0.01)  # the scheduler may rearrange its threads
            copies.measure()
            products.measure()
    settled = copies.settled and products.settled
    precision = torch.get_float32_matmul_precision()
    notes = ["" if precision == "highest" else f"float32 products in precision {precision!r}"]
    notes += ["" if settled else BUSY]
    return Ceilings(
        device=device_name(kind),
        kind=kind,
        threads=torch.get_num_threads() if kind == "cpu" else 0,
        bandwidth=copies.bandwidth(),
        rates=products.rates(),
        measured=time.time(),
        partial=not settled,
        note="; ".join(filter(None, notes)),
    )


@dataclass
class Best:
    """The shortest time of an action."""

    seconds: float = float("inf")
    settled: bool = False
    """False if the time may be the scheduler's rather than the action's."""

    def take(self, other: Best) -> None:
        """Merge a further measurement of the same action."""
        self.seconds = min(self.seconds, other.seconds)
        self.settled |= other.settled


class _CPU:
    """Times actions by the host's clock."""

    device = "cpu"

    def best(self, action: Callable[[], object], seconds: float) -> Best:
        """About the shortest of many back-to-back calls, each timed.

        On a busy machine a parallel call includes the time until the scheduler runs its threads
        together; later calls may not. So the result counts as settled only if the best few calls
        agree, and if no thread had to wait for a processor or the calls are shorter than a
        scheduler's slice.
        """
        read = time.perf_counter_ns
        best: list[int] = []
        before_waiting, start = waited_seconds(), read()
        ends = start + int(seconds * 1e9)
        before = start
        while before < ends or len(best) < _AGREEING:
            before = read()
            action()
            taken = read() - before
            if len(best) < _AGREEING:
                insort(best, taken)
            elif taken < best[-1]:
                insort(best, taken)
                del best[-1]
        elapsed = (read() - start) / 1e9
        middle = best[_AGREEING // 2] / 1e9
        agree = best[-1] <= _AGREEMENT * best[0]
        alone = waited_seconds() - before_waiting < _WAITING * elapsed
        return Best(middle, agree and (alone or middle < _SLICE))

    def empty(self, action: Callable[[], object]) -> float:
        """The overhead of a call that does next to nothing, in seconds."""
        return self.best(action, _COPY_SECONDS).seconds


def waited_seconds() -> float:
    """Seconds that the threads of this process were ready to run without a free processor."""
    folder = Path("/proc/self/task")
    return sum(waited(int(one.name)) for one in folder.iterdir()) if folder.exists() else 0.0


class _GPU:
    """Times actions by the GPU's clock, many in one CUDA graph, to exclude launch latency."""

    device = "cuda"

    def best(self, action: Callable[[], object], seconds: float) -> Best:
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
        return Best(min(self._events(graph.replay) for _ in range(5)) / count, True)

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


class _Copies:
    """Copies with working sets of each power of two, in bytes read and written together."""

    def __init__(self, timer: _CPU | _GPU, largest: int) -> None:
        self.timer = timer
        self.best = {
            1 << power: Best() for power in range(_SMALLEST.bit_length() - 1, largest.bit_length())
        }
        self._source, self._target = (
            torch.ones(largest // 2, dtype=torch.uint8, device=timer.device) for _ in range(2)
        )
        self._empty = timer.empty(self._copy(2))

    def _copy(self, size: int) -> Callable[[], object]:
        copy = torch.ops.aten.copy_.default
        target, source = self._target[: size // 2], self._source[: size // 2]
        return lambda: copy(target, source)

    def measure(self) -> None:
        """Measure the sizes that are not settled."""
        for size, best in self.best.items():
            if not best.settled:
                best.take(self.timer.best(self._copy(size), _COPY_SECONDS))
        least = float("inf")
        for best in reversed(self.best.values()):
            # a smaller set takes no longer than a larger one
            best.settled &= best.seconds <= _AGREEMENT * least
            least = min(least, best.seconds)

    @property
    def settled(self) -> bool:
        return all(best.settled for best in self.best.values())

    def bandwidth(self) -> tuple[Bandwidth, ...]:
        """The bandwidth of settled sizes. For the smallest sets the call overhead dominates; at
        most half of the time is subtracted."""
        return tuple(
            Bandwidth(
                bytes=size, per_second=size / max(best.seconds - self._empty, best.seconds / 2)
            )
            for size, best in self.best.items()
            if best.settled
        )


class _Products:
    """Products of square matrices of each dtype, large enough to fill the machine."""

    def __init__(self, timer: _CPU | _GPU) -> None:
        self.timer = timer
        self.best: dict[str, tuple[float, bool]] = {}
        """(FLOP/s, settled)."""

    def measure(self) -> None:
        """Measure the dtypes that are not settled."""
        for name in _DTYPES:
            if not self.best.get(name, (0.0, False))[1]:
                self._measure(name)

    def _measure(self, name: str) -> None:
        rate, settled = self.best.get(name, (0.0, False))
        dtype, done = getattr(torch, name), 0
        # as large as a fifth of the budget allows, which only trying reveals
        while (size := _size_for(rate)) > done:
            try:
                one, other = (_matrix(size, dtype, self.timer.device) for _ in range(2))
                out = torch.mm(one, other)
                best = self.timer.best(partial(torch.mm, one, other, out=out), _PRODUCT_SECONDS / 3)
            except RuntimeError:  # this build or GPU has no such product, or no memory for it
                settled = True
                break
            done = size
            settled = best.settled
            rate = max(rate, 2 * size**3 / best.seconds)
        self.best[name] = rate, settled

    @property
    def settled(self) -> bool:
        return all(settled for _, settled in self.best.values())

    def rates(self) -> dict[str, float]:
        """FLOP/s by dtype, for settled dtypes."""
        return {name: rate for name, (rate, settled) in self.best.items() if rate and settled}


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
