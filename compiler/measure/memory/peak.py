"""The peak memory of one call beyond what was in use before it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import torch

from tcw.compiler.measure.calls.runs import Prepare
from tcw.compiler.runtime.launcher import release_pooled

_SELF = Path("/proc/self")


def peak_bytes(call: Callable[[], object], device: str, *, graphs: bool = False) -> int | None:
    """Peak memory in bytes; None if this machine does not report it. Includes the call's result.

    `device` is where the call runs: `cpu` or `cuda`. On a GPU, this is what torch's allocator hands
    out; with `graphs`, for a call that replays CUDA graphs, also what their private pools hold
    between calls. On a CPU, it is the kernel's own count for this process (VmHWM in
    /proc/self/status), which includes memory that torch does not see: arenas of generated code, and
    buffers into which libraries pack matrices. The kernel counts in steps of a few hundred KB. Our
    engine's pool of outputs is emptied first.
    """
    gc.collect()
    if not device.startswith("cuda"):
        return _of_process(call)
    return _of_gpu(call) + (graph_pool_bytes() if graphs else 0)


def least_peak_bytes(prepare: Prepare, device: str, *, graphs: bool = False) -> int | None:
    """The lesser of two tries, each of a run that is prepared before it is measured."""
    tries = [peak_bytes(prepare(), device, graphs=graphs) for _ in range(2)]
    return min((peak for peak in tries if peak is not None), default=None)


def _of_gpu(call: Callable[[], object]) -> int:
    cuda = torch.cuda
    cuda.synchronize()
    before = int(cuda.memory_allocated())
    cuda.reset_peak_memory_stats()
    kept = call()
    cuda.synchronize()
    most = int(cuda.max_memory_allocated()) - before
    del kept
    return most


def graph_pool_bytes() -> int:
    """Bytes that CUDA graphs hold whether they run or not, unavailable to anyone else."""
    return sum(
        int(segment["total_size"] - segment["allocated_size"])
        for segment in torch.cuda.memory_snapshot()
        if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0)
    )


def _of_process(call: Callable[[], object]) -> int | None:
    release_pooled()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # free blocks would otherwise serve the call unseen
    try:
        (_SELF / "clear_refs").write_text("5")  # resets the high-water mark to current use
    except OSError:
        return None
    before = bytes_in(_SELF / "status", "VmRSS")
    kept = call()
    after = bytes_in(_SELF / "status", "VmHWM")
    del kept
    return None if before is None or after is None else max(0, after - before)


def bytes_in(file: Path, row: str) -> int | None:
    """A row of one of the kernel's files, which count in KB; None if the system has none."""
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            key, _, value = line.partition(":")
            if key == row:
                return int(value.split()[0]) * 1024
    return None
