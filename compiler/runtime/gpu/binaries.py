"""A module's kernels as machine code, by Triton's compiler; cached by what they do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import msgspec

from tcw.compiler.codegen.unit import DeviceKernel
from tcw.compiler.runtime.gpu.triton_stages import Metadata, Ptx, assembled, load_module, to_ptx
from tcw.compiler.runtime.store import FileStore, digest

T = TypeVar("T")
R = TypeVar("R")

FORMAT = 5
MOST_THREADS = 16
"""Kernels that are compiled at the same time."""
A_BATCH = 8
"""Kernels that a call of ptxas is given, on average."""


class StoredBinary(msgspec.Struct, frozen=True):
    """One kernel's machine code in the store."""

    name: str
    """Of its entry."""
    code: str
    """Digest of the machine code, which may have other kernels, too."""
    threads: int
    """Per program."""
    shared: int
    """Bytes of shared memory per program."""


_BINARY = msgspec.json.Decoder(StoredBinary)


@cache
def triton_version() -> str:
    """The installed Triton's version; "" if there is none."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""


def binaries(
    text: str, kernels: Sequence[DeviceKernel], arch: str, store: FileStore
) -> list[StoredBinary]:
    """The machine code of each kernel, from the store or compiled, several at a time.

    `text` defines the kernels, for `arch` such as `sm_90`. Raises `NoTriton`, OSError.
    """
    keys = [_key(kernel, arch) for kernel in kernels]
    found = {key: _find(key, store) for key in keys}
    if None in found.values():
        with store.locked("".join(keys)):  # another process may compile them now
            found = {
                key: stored_binary or _find(key, store) for key, stored_binary in found.items()
            }
            pairs = zip(keys, kernels, strict=True)
            lacking = {key: kernel for key, kernel in pairs if found[key] is None}
            if lacking:
                found.update(_compiled(load_module(text), lacking, arch, store))
    return [binary for key in keys if (binary := found[key]) is not None]


def _key(kernel: DeviceKernel, arch: str) -> str:
    """The name in the store of a kernel's machine code. Its entry has the kernel's name, which
    profilers show."""
    parts = [FORMAT, kernel.name, kernel.key, kernel.types, kernel.warps, kernel.checks]
    parts.append(kernel.divisible)
    return digest(msgspec.json.encode([*parts, arch, triton_version()]))


def in_threads(make: Callable[[T], R], these: Sequence[T], lines: Sequence[int]) -> list[R]:
    """The results of compiling these kernels, in their order. `lines` of each: the longest begin
    first, so that none of them runs alone at the end."""
    order = sorted(range(len(these)), key=lambda number: -lines[number])
    with ThreadPoolExecutor(threads_for(len(these))) as pool:
        begun = {number: pool.submit(make, these[number]) for number in order}
    return [begun[number].result() for number in range(len(these))]


def threads_for(kernels: int) -> int:
    """How many of them compile at the same time on the processors that this process may use."""
    return max(min(kernels, len(os.sched_getaffinity(0)), MOST_THREADS), 1)


def _find(key: str, store: FileStore) -> StoredBinary | None:
    binary = store.read_record("binaries", f"{key}.json", _BINARY)
    return binary if binary is not None and code_of(binary, store) is not None else None


def code_of(binary: StoredBinary, store: FileStore) -> bytes | None:
    """The machine code, or None if it is gone or damaged."""
    content = store.read("objects", f"{binary.code}.cubin")
    return content if content is not None and digest(content) == binary.code else None


def _compiled(
    module: dict[str, Any], lacking: dict[str, DeviceKernel], arch: str, store: FileStore
) -> dict[str, StoredBinary]:
    """The kernels by their keys, compiled into the store. Each thread takes the longest that is
    left; machine code is made of several at a time."""
    waiting = sorted(lacking.items(), key=lambda pair: pair[1].count)

    def work(_: int) -> dict[str, Ptx]:
        taken: dict[str, Ptx] = {}
        with contextlib.suppress(IndexError):
            while True:
                key, kernel = waiting.pop()
                taken[key] = to_ptx(module, kernel, arch)
        return taken

    def assemble(batch: dict[str, Ptx]) -> dict[str, StoredBinary]:
        codes = assembled(list(batch.values()))
        return {
            key: _kept(key, made.metadata, code, store)
            for (key, made), code in zip(batch.items(), codes, strict=True)
        }

    threads = threads_for(len(lacking))
    made: dict[str, Ptx] = {}
    for some in in_threads(work, range(threads), [1] * threads):
        made.update(some)
    batches = batched(made, threads)
    lengths = [sum(len(ptx.ptx) for ptx in batch.values()) for batch in batches]
    found: dict[str, StoredBinary] = {}
    for binaries in in_threads(assemble, batches, lengths):
        found.update(binaries)
    return found


def batched(made: dict[str, Ptx], most: int) -> list[dict[str, Ptx]]:
    """The kernels for each call of ptxas, at most `most` calls: texts of about the same length, and
    `A_BATCH` kernels on average, since ptxas takes as long to start as for a small kernel."""
    batches: list[dict[str, Ptx]] = [{} for _ in range(min(most, -(-len(made) // A_BATCH)))]
    lengths = [0] * len(batches)
    for key, ptx in sorted(made.items(), key=lambda pair: -len(pair[1].ptx)):
        least = lengths.index(min(lengths))
        batches[least][key] = ptx
        lengths[least] += len(ptx.ptx)
    return batches


def _kept(key: str, about: Metadata, code: bytes, store: FileStore) -> StoredBinary:
    binary = StoredBinary(about.name, digest(code), 32 * about.num_warps, about.shared)
    store.write("objects", f"{binary.code}.cubin", code)
    store.write_sealed("binaries", f"{key}.json", msgspec.json.encode(binary))
    return binary
