"""A module's kernels as machine code, by Triton's compiler; cached by their text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import msgspec

from compiler.codegen.device import DeviceKernel
from compiler.runtime.gpu.stages import compiled, load_module
from compiler.runtime.libraries import without_comments
from compiler.runtime.store import Store, digest

T = TypeVar("T")
R = TypeVar("R")

FORMAT = 4
MOST_THREADS = 16
"""Kernels that are compiled at the same time."""


class Binary(msgspec.Struct, frozen=True):
    """One kernel's machine code in the store."""

    name: str
    """Of its entry."""
    code: str
    """Digest of the machine code."""
    threads: int
    """Per program."""
    shared: int
    """Bytes of shared memory per program."""


_BINARY = msgspec.json.Decoder(Binary)


@cache
def triton_version() -> str:
    """The installed Triton's version; "" if there is none."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""


def binaries(text: str, kernels: Sequence[DeviceKernel], arch: str, store: Store) -> list[Binary]:
    """The machine code of each kernel, from the store or compiled, several at a time.

    `text` defines the kernels, for `arch` such as `sm_90`. Raises `NoTriton`, OSError.
    """
    keys = _keys(text, kernels, arch)
    found = {key: _find(key, store) for key in keys}
    lacking = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if found[key] is None}
    if lacking:
        module = load_module(text)

        def make(key: str) -> Binary:
            with store.locked(key):  # another process may compile it now
                return _find(key, store) or _compile(module, lacking[key], arch, key, store)

        order = list(lacking)
        made = in_threads(make, order, [lacking[key].count for key in order])
        found.update(zip(order, made, strict=True))
    return [binary for key in keys if (binary := found[key]) is not None]


def _keys(text: str, kernels: Sequence[DeviceKernel], arch: str) -> list[str]:
    """The name in the store of each kernel's machine code."""
    lines = text.split("\n")
    shared_part = "\n".join(lines[: kernels[0].line - 1]) if kernels else ""
    keys = []
    for kernel in kernels:
        own = "\n".join(lines[kernel.line - 1 : kernel.line - 1 + kernel.count])
        parts = [FORMAT, shared_part, without_comments(own, "#"), kernel.types, kernel.warps]
        parts += [kernel.checks, kernel.divisible]
        keys.append(digest(msgspec.json.encode([*parts, arch, triton_version()])))
    return keys


def in_threads(make: Callable[[T], R], these: Sequence[T], lines: Sequence[int]) -> list[R]:
    """The results of compiling these kernels, in their order. `lines` of each: the longest begin
    first, so that none of them is alone at the end."""
    order = sorted(range(len(these)), key=lambda number: -lines[number])
    with ThreadPoolExecutor(threads_for(len(these))) as pool:
        begun = {number: pool.submit(make, these[number]) for number in order}
    return [begun[number].result() for number in range(len(these))]


def threads_for(kernels: int) -> int:
    """How many of them compile at the same time on the processors that this process may use."""
    return max(min(kernels, len(os.sched_getaffinity(0)), MOST_THREADS), 1)


def _find(key: str, store: Store) -> Binary | None:
    content = store.read_sealed("binaries", f"{key}.json")
    if content is None:
        return None
    try:
        found = _BINARY.decode(content)
    except msgspec.MsgspecError:
        return None
    return found if code_of(found, store) is not None else None


def code_of(binary: Binary, store: Store) -> bytes | None:
    """The machine code, or None if it is gone or damaged."""
    content = store.read("objects", f"{binary.code}.cubin")
    return content if content is not None and digest(content) == binary.code else None


def _compile(
    module: dict[str, Any], kernel: DeviceKernel, arch: str, key: str, store: Store
) -> Binary:
    made = compiled(module, kernel, arch)
    code = made.asm["cubin"]
    about = made.metadata
    binary = Binary(about.name, digest(code), 32 * about.num_warps, about.shared)
    store.write("objects", f"{binary.code}.cubin", code)
    store.write_sealed("binaries", f"{key}.json", msgspec.json.encode(binary))
    return binary
